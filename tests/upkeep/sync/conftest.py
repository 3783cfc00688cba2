"""Two homes and the folder that they share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.upkeep.sync.machines import Machine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def pair(tmp_path: Path, folder: Path) -> Iterator[list[Machine]]:
    machines = [Machine(tmp_path / name, folder) for name in ("a", "b")]
    yield machines
    for machine in machines:
        machine.close()
