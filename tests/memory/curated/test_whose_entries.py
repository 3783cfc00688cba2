"""Whose an entry is: nothing that came from untrusted text replaces, contains or ends what a person said."""

from collections.abc import Callable
from pathlib import Path

import pytest

import memoranda
from memoranda.home import config
from memoranda.memory.curated import change_history
from memoranda.memory.curated.moves import move_entry, write_notes
from memoranda.memory.curated.operations import (
    Add,
    AwaitsApproval,
    MemoryReceipt,
    MemoryRefusal,
    Operation,
    Put,
    Remove,
    Replace,
)
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.home import Home
from memoranda.support.origin import PERSON, Origin

OWN = Origin("agent", "s")
EVIL = Origin("agent", "s", sources=("web_fetch",))
TEXT = "The office is in Berlin."
OTHER = "The office is in Madrid."


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(tmp_path)


def _sources(store: MemoryStore, target: str = "memory") -> tuple[str, ...]:
    (found,) = store.facts(target)
    return found.sources


def test_the_same_text_in_another_target_makes_no_entry_untrusted(store: MemoryStore) -> None:
    """Each target has its own entry: what a page says in one waits in the other."""
    store.add("memory", TEXT, OWN)
    store.add("user", TEXT, EVIL)
    assert (_sources(store), _sources(store, "user")) == ((), ("web_fetch",))
    assert isinstance(store.replace("memory", TEXT, OTHER, EVIL), AwaitsApproval)
    assert isinstance(store.replace("user", TEXT, OTHER, EVIL), MemoryReceipt)


def test_a_page_moves_nothing_that_a_person_said(tmp_path: Path) -> None:
    """Not to another target, not to notes, and not from notes; what a page said it may move, with its origin."""
    with memoranda.open(tmp_path) as memory:
        store = memory.curated
        assert store.notes is not None
        store.add("memory", TEXT, OWN)
        write_notes(store, [Add(OTHER)], OWN)
        for source, text, to in (("memory", TEXT, "user"), ("memory", TEXT, "notes"), ("notes", OTHER, "memory")):
            assert isinstance(move_entry(store, source, text, to, EVIL), MemoryRefusal), (source, to)
        assert store.entries("memory") == (TEXT,) and [note.text for note in store.notes.all()] == [OTHER]
        move_entry(store, "memory", TEXT, "notes", OWN)
        assert isinstance(write_notes(store, [Remove(TEXT)], EVIL), MemoryRefusal)
        store.add("user", "The lift is broken.", EVIL)
        for source, to in (("user", "memory"), ("memory", "notes"), ("notes", "user")):
            assert isinstance(move_entry(store, source, "lift", to, EVIL), MemoryReceipt)
        assert _sources(store, "user") == ("web_fetch",)


@pytest.mark.parametrize("mover", [OWN, PERSON])
def test_a_move_carries_the_origin_of_the_entry(store: MemoryStore, mover: Origin) -> None:
    """What a page said stays what a page said, whoever moves it, also when the move is undone."""
    store.add("memory", TEXT, EVIL)
    move_entry(store, "memory", TEXT, "user", mover)
    assert _sources(store, "user") == ("web_fetch",)
    change_history.undo(store, None, PERSON)
    assert _sources(store) == ("web_fetch",) and store.facts("user") == []


def test_a_moved_entry_of_the_user_meets_the_same_text_of_a_page(store: MemoryStore) -> None:
    """The one that stays is the user's own."""
    store.add("memory", TEXT, OWN)
    store.add("user", TEXT, EVIL)
    move_entry(store, "memory", TEXT, "user", OWN)
    assert (store.entries("memory"), _sources(store, "user")) == ((), ())


def _add(store: MemoryStore) -> None:
    store.add("memory", TEXT, OWN)


def _add_with_others(store: MemoryStore) -> None:
    store.apply("memory", [Add(TEXT), Add(OTHER)], OWN)
    store.remove("memory", OTHER, OWN)


def _remove_and_add(store: MemoryStore) -> None:
    store.remove("memory", TEXT, OWN)
    store.add("memory", TEXT, OWN)


def _replace_by_it(store: MemoryStore) -> None:
    store.add("memory", OTHER, OWN)
    store.replace("memory", OTHER, TEXT, OWN)


@pytest.mark.parametrize("say", [_add, _add_with_others, _remove_and_add, _replace_by_it])
def test_what_the_user_says_is_theirs_although_a_page_said_it_before(
    store: MemoryStore, say: Callable[[MemoryStore], None]
) -> None:
    """The prompt no longer warns, and a page cannot replace it; a purge keeps that."""
    store.add("memory", TEXT, EVIL)
    say(store)
    assert _sources(store) == ()
    store.load_from_disk()
    assert "[origin:" not in (store.format_for_system_prompt("memory") or "")
    assert isinstance(store.replace("memory", TEXT, OTHER, EVIL), AwaitsApproval)
    change_history.purge(store)
    assert _sources(store) == ()


def test_a_note_that_the_user_says_again_is_theirs(tmp_path: Path) -> None:
    """And a page that notes it once more does not take it back."""
    with memoranda.open(tmp_path) as memory:
        store = memory.curated
        assert store.notes is not None
        write_notes(store, [Add(TEXT)], EVIL)
        write_notes(store, [Add(TEXT)], OWN)
        store.add("memory", TEXT, EVIL)
        assert isinstance(move_entry(store, "memory", TEXT, "notes", EVIL), MemoryReceipt)
        assert [note.sources for note in store.notes.all()] == [()]


def test_an_undo_brings_an_entry_back_as_the_users_own(store: MemoryStore) -> None:
    """Although a page said the same, with a last day, after the user had removed it."""
    store.add("memory", TEXT, OWN)
    removed = store.remove("memory", TEXT, OWN)
    store.apply("user", [Add(TEXT, until="2020-01-31")], EVIL)
    store.add("memory", TEXT, EVIL)
    store.remove("memory", TEXT, EVIL)
    assert isinstance(removed, MemoryReceipt)
    change_history.undo(store, removed.change, PERSON)
    assert _sources(store) == () and store.valid_entries("memory") == (TEXT,)


@pytest.mark.parametrize("operation", [Replace("Fact 0", "Fact 0 is " + "about crane " * 75), Remove("Fact 0")])
def test_making_room_for_a_page_does_not_avoid_the_decision(tmp_path: Path, operation: Operation) -> None:
    """A change of the user's own text that does not fit makes no room before a person has decided."""
    config.set_value(Home.at(tmp_path), "memory.when_full", "make_room")
    with memoranda.open(tmp_path) as memory:
        for number in range(3):
            memory.remember(f"Fact {number} " + "about heron " * 40)
        page = "The office is in Lyon" + " and in Paris" * 40 + "."
        assert isinstance(memory.curated.add("memory", page, EVIL), MemoryReceipt)
        before = memory.entries()
        assert not isinstance(memory.curated.apply("memory", [operation], EVIL), MemoryReceipt)
        assert memory.entries() == before


def test_a_page_makes_no_key(store: MemoryStore) -> None:
    """What begins alike in two entries of the user is no key because a page used it as one."""
    store.apply("memory", [Put("lunch", "at noon")], EVIL)
    assert store.journal.keys("memory") == frozenset()
    store.apply("memory", [Put("lunch", "at one")], OWN)
    assert store.journal.keys("memory") == {"lunch"}
