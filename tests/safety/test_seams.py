"""A write costs in proportion to the entries, whatever they contain: long words look like halves of something else."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from memoranda.memory.curated.operations import MemoryReceipt
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.origin import PERSON

_FEW, _MANY = 50, 400
_KINDS: dict[str, Callable[[str], str]] = {
    "runs": lambda number: f"c-{number} {'x' * 40}",
    "hashes": lambda number: f"build {number} is 3f786850e387550fdab836ed7e6dc881de23001b{number}",
    "paths": lambda number: f"log {number} in /srv/data/projects/alpha/beta/gamma/delta/{number}/file",
    "addresses": lambda number: f"page {number} is https://docs.example/handbook/chapters/{number}/introduction",
    "sentences": lambda number: f"Ana likes the number {number} more than the others",
}


def _calls(work: Callable[[], object]) -> int:
    """How many functions of Python a piece of work calls, which no other process changes."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _calls_of_a_write(directory: Path, kind: str, entries: int) -> int:
    """Open a memory with so many entries, and add one."""
    make = _KINDS[kind]
    directory.mkdir()
    # Other numbers than in any other memory, so that no finding is known already.
    texts = [make(f"{entries:03}{number:04}") for number in range(entries + 1)]
    (directory / "MEMORY.md").write_text("\n§\n".join(texts[:-1]))

    def write() -> None:
        store = MemoryStore(directory, CuratedSettings(memory_char_limit=1_000_000))
        store.entries("memory")
        assert isinstance(store.add("memory", texts[-1], PERSON), MemoryReceipt)

    return _calls(write)


@pytest.mark.slow
@pytest.mark.parametrize("kind", _KINDS)
def test_a_write_costs_in_proportion_to_the_entries(tmp_path: Path, kind: str) -> None:
    """Eight times the entries cost at most ten times the calls; each pair of entries would make it sixty-four."""
    _calls_of_a_write(tmp_path / "first", kind, 10)
    few = _calls_of_a_write(tmp_path / "few", kind, _FEW)
    many = _calls_of_a_write(tmp_path / "many", kind, _MANY)
    assert many < few * 10 * _MANY // (8 * _FEW), (few, many)
