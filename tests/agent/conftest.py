"""An opened home and a room in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.api.memory import Memory, open_memory
from tests.agent.rooms import Room


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def room(memory: Memory) -> Room:
    return Room(memory.session(source="test"))
