"""Skips, with a reason, tests of packages that are not installed."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB


def _require(*packages: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


@pytest.fixture
def static_vectors() -> None:
    """Needs the word vectors."""
    _require("numpy", "tokenizers", "wordllama")


@pytest.fixture
def onnx() -> None:
    """Needs a runtime for ONNX models."""
    _require("numpy", "tokenizers", "onnxruntime")


@pytest.fixture
def numpy() -> None:
    _require("numpy")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "home/state.db") as db:
        yield db
