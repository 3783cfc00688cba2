"""The journal says when each entry was last written or confirmed."""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.curated import change_history
from memoranda.memory.curated.change_history import confirm_entry
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.operations import MemoryRefusal
from memoranda.memory.curated.settings import TARGETS, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.origin import PERSON
from tests.memory.curated.storages import open_store

pytestmark = pytest.mark.slow

DAY = 86_400.0


def _turn_back(store: MemoryStore, days: float) -> None:
    """Make everything in the journal so much older."""

    def older(line: bytes) -> bytes:
        at = json.loads(line)["at"]
        moved = datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() - days * DAY
        return line.replace(at.encode(), datetime.fromtimestamp(moved, UTC).isoformat().replace("+00:00", "Z").encode())

    with store.exclusive():
        store.journal.rewrite(older)


def _ages(store: MemoryStore, target: Target = "memory") -> dict[str, int]:
    """The days since each entry was written or confirmed."""
    return {item.entry.text: round((time.time() - item.checked_at) / DAY) for item in store.facts(target)}


def test_a_write_and_a_confirmation_make_an_entry_new(store: MemoryStore) -> None:
    """Others keep their age; what an undo brings back is as old as it was."""
    for text in ("Uses tabs.", "Uses make.", "Uses vim."):
        store.add("memory", text)
    _turn_back(store, 100)
    assert _ages(store) == {"Uses tabs.": 100, "Uses make.": 100, "Uses vim.": 100}
    before = store.path("memory").read_bytes()
    confirmed = confirm_entry(store, TARGETS, "tabs", PERSON)
    assert isinstance(confirmed, ScannedEntry) and store.path("memory").read_bytes() == before
    store.replace("memory", "make", "Uses ninja.")
    assert _ages(store) == {"Uses tabs.": 0, "Uses ninja.": 0, "Uses vim.": 100}
    change_history.undo(store, None, PERSON)
    assert _ages(store) == {"Uses tabs.": 0, "Uses make.": 100, "Uses vim.": 100}


def test_a_confirmation_survives_in_the_journal(store: MemoryStore) -> None:
    """Another store reads it, later writes do not take it for an outside change, and a purge keeps the entry."""
    store.add("user", "Lives in Oslo.")
    _turn_back(store, 200)
    entry = store.facts("user")[0].entry
    confirm_entry(store, TARGETS, entry.handle, PERSON)
    other = open_store(store.directory)
    assert _ages(other, "user") == {"Lives in Oslo.": 0}
    assert not isinstance(other.add("user", "Likes tea."), MemoryRefusal)
    change_history.purge(other, None)
    assert set(_ages(other, "user")) == {"Lives in Oslo.", "Likes tea."}


@pytest.mark.about_files
def test_an_entry_that_is_not_in_the_journal_is_as_old_as_its_file(
    store: MemoryStore, write: Callable[..., Path]
) -> None:
    """A person may have written it."""
    assert store.facts("memory") == []
    file = write("By hand.\n")
    os.utime(file, (time.time() - 30 * DAY,) * 2)
    assert _ages(store) == {"By hand.": 30}


@pytest.mark.parametrize(("text", "reason"), [("nothing", "no_match"), ("Uses", "ambiguous"), ("", "no_match")])
def test_what_names_no_single_entry_confirms_nothing(store: MemoryStore, text: str, reason: str) -> None:
    """The refusal shows what was found."""
    store.add("memory", "Uses tabs.")
    store.add("user", "Uses vim.")
    refused: Any = confirm_entry(store, TARGETS, text, PERSON)
    assert isinstance(refused, MemoryRefusal) and refused.reason == reason
    assert refused.matches == (("Uses tabs.", "Uses vim.") if reason == "ambiguous" else ())
    assert len(list(store.journal.changes())) == 2
