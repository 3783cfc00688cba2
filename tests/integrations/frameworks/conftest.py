"""A home for each test of an adapter."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def memory(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[memoranda.Memory]:
    """An open home without users, with its record in a file or on a server."""
    if request.param == "server":
        monkeypatch.setenv("MEMORANDA_STORE", request.getfixturevalue("postgres_url"))
    with memoranda.open(tmp_path / "home") as memory:
        yield memory
