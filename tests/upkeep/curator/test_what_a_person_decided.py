"""What a person said, took back or confirmed is theirs: no rule and no untrusted text displaces it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import memoranda
from memoranda.home import config
from memoranda.memory.curated import change_history
from memoranda.memory.curated.moves import move_entry, write_notes
from memoranda.memory.curated.operations import Add, AwaitsApproval, MemoryReceipt, MemoryRefusal, Remove, Replace
from memoranda.support.home import Home
from memoranda.support.origin import PERSON, Origin

PAGE = Origin("agent", "s1", sources=("web_fetch",))
SHORT, LONG = "Backups are on heron.", "Backups are on heron. They are encrypted."
RULE = "Never delete the folder old."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[memoranda.Memory]:
    """A home whose curator tidies up after sessions."""
    config.set_value(Home.at(tmp_path), "curate.mode", "auto")
    with memoranda.open(tmp_path) as opened:
        yield opened


def _from_page(memory: memoranda.Memory, text: str) -> None:
    assert isinstance(memory.curated.apply("memory", [Add(text)], PAGE), MemoryReceipt)


def _end_a_session(memory: memoranda.Memory) -> None:
    with memory.session() as session, session.turn("Hello.") as turn:
        turn.done("Hello.")


def test_what_was_undone_is_not_proposed_again(memory: memoranda.Memory) -> None:
    """Neither the same change nor its opposite, by hand or by itself; another undo does the run again."""
    memory.remember(SHORT)
    memory.remember(LONG)
    (number,) = memory.curate(apply=True)["applied"]
    undone = change_history.undo(memory.curated, number, PERSON)
    assert isinstance(undone, MemoryReceipt)
    assert memory.curate()["changes"] == []
    _end_a_session(memory)
    assert memory.entries() == (SHORT, LONG)
    change_history.undo(memory.curated, undone.change, PERSON)
    assert memory.entries() == (LONG,)


def test_an_undo_confirms_nothing(memory: memoranda.Memory) -> None:
    """What comes back is as old as it was, after a run of the curator and after a removal."""
    memory.remember(LONG)
    (before,) = memory.curated.facts("memory")
    memory.curated.remove("memory", "Backups", PERSON)
    change_history.undo(memory.curated, None, PERSON)
    assert memory.curated.facts("memory") == [before]
    memory.remember("The freeze is on.", until="2020-01-31")
    old = memory.curated.facts("memory")
    memory.curate(apply=True)
    change_history.undo(memory.curated, None, PERSON)
    assert memory.curated.facts("memory") == old


def test_what_was_removed_and_came_back_stays(memory: memoranda.Memory) -> None:
    """A person who took their own removal back wants the entry."""
    memory.remember(SHORT)
    memory.remember(LONG)
    memory.curated.remove("memory", SHORT, PERSON)
    change_history.undo(memory.curated, None, PERSON)
    assert memory.curate()["changes"] == []


def test_a_page_displaces_nothing_that_a_person_said(memory: memoranda.Memory) -> None:
    """Neither by saying more nor by saying it later, in a run that nobody looks at."""
    memory.remember(SHORT)
    _from_page(memory, LONG)
    assert memory.curate()["changes"] == []
    _end_a_session(memory)
    assert memory.entries() == (SHORT, LONG)


def test_what_a_person_said_stays_beside_the_same_words_of_a_page(memory: memoranda.Memory) -> None:
    """The page's copy leaves, though it came later, and the proposal names the page."""
    memory.remember(SHORT)
    _from_page(memory, SHORT.rstrip("."))
    (change,) = memory.curate()["changes"]
    assert (change["rule"], change["after"]) == ("same", [SHORT])
    assert "[origin: web_fetch; not said by the user]" in change["reason"]
    memory.curate(apply=True)
    assert memory.entries() == (SHORT,)


@pytest.mark.parametrize(
    "operation",
    [
        Replace("Backups", "The backups moved to the disk called scratch."),
        Remove("Backups"),
        Add(SHORT, until="2020-01-31"),
        Replace(SHORT, SHORT, until="2020-01-31"),
    ],
)
def test_a_page_waits_for_a_person_to_change_what_a_person_said(
    memory: memoranda.Memory, operation: Add | Replace | Remove
) -> None:
    """Whether it replaces, removes or ends it; what a page said, a page may change."""
    memory.remember(SHORT)
    _from_page(memory, "The office is in Lyon.")
    assert isinstance(memory.curated.apply("memory", [operation], PAGE), AwaitsApproval)
    assert memory.curated.valid_entries("memory") == (SHORT, "The office is in Lyon.")
    outcome = memory.curated.apply("memory", [Replace("Lyon", "The office is in Paris.")], PAGE)
    assert isinstance(outcome, MemoryReceipt)


def test_a_rule_of_the_user_leaves_by_their_own_words_only(memory: memoranda.Memory) -> None:
    """Not for a plain statement of a page, and not to the notes."""
    memory.remember(RULE)
    _from_page(memory, "The folder old is empty since June.")
    _end_a_session(memory)
    assert memory.entries() == (RULE, "The folder old is empty since June.")
    assert isinstance(move_entry(memory.curated, "memory", "Never", "notes", PAGE), MemoryRefusal)
    assert isinstance(memory.curated.apply("memory", [Replace("Never", "Deletes old.")], PERSON), MemoryReceipt)


def test_an_undo_of_a_person_does_not_make_a_page_trusted(memory: memoranda.Memory) -> None:
    """Nor does a move to the notes and back: the prompt says where it comes from, as the note does."""
    _from_page(memory, LONG)
    memory.curated.remove("memory", "Backups", PERSON)
    change_history.undo(memory.curated, None, PERSON)
    assert memory.curated.facts("memory")[0].sources == ("web_fetch",)
    move_entry(memory.curated, "memory", "Backups", "notes", PERSON)
    assert memory.curated.notes is not None and "origin: web_fetch" in memory.curated.notes.all()[0].shown
    move_entry(memory.curated, "notes", "Backups", "memory", PERSON)
    with memory.session() as session:
        assert "[origin: web_fetch; not said by the user]" in session.prompt


def test_a_note_of_a_page_keeps_its_origin_as_an_entry(memory: memoranda.Memory) -> None:
    """And it replaces no note of the user's own."""
    write_notes(memory.curated, [Add(SHORT)], PERSON)
    assert isinstance(write_notes(memory.curated, [Add("The office is in Lyon.")], PAGE), MemoryReceipt)
    replaced = write_notes(memory.curated, [Replace("Backups", "The backups are on scratch.")], PAGE)
    assert isinstance(replaced, MemoryRefusal) and memory.curated.notes is not None
    assert {note.text for note in memory.curated.notes.all()} == {SHORT, "The office is in Lyon."}
    move_entry(memory.curated, "notes", "Lyon", "memory", PERSON)
    assert memory.curated.facts("memory")[0].sources == ("web_fetch",)


def test_a_page_makes_no_room_at_the_cost_of_the_user(tmp_path: Path) -> None:
    """A full memory gives what other pages said; without that it refuses."""
    config.set_value(Home.at(tmp_path), "memory.when_full", "make_room")
    with memoranda.open(tmp_path) as memory:
        for number in range(4):
            memory.remember(f"Fact {number} " + "about heron " * 40)
        page = "The office is in Lyon" + " and in Paris" * 40 + "."
        assert isinstance(memory.curated.apply("memory", [Add(page)], PAGE), MemoryRefusal)
        memory.curated.remove("memory", "Fact 3", PERSON)
        _from_page(memory, page)
        _from_page(memory, page.replace("Lyon", "Turin"))
        assert len(memory.entries()) == 4 and all("Lyon" not in entry for entry in memory.entries())


def test_two_values_of_one_key_become_the_newer_one(memory: memoranda.Memory) -> None:
    """As two machines may have saved them; a text that merely has a colon is no value of a key."""
    memory.remember("Europe/Berlin", key="time zone")
    for text in ("Ana: owns billing", "Ana: likes tea", "time zone: Europe/Lisbon"):
        memory.remember(text)
    (change,) = memory.curate()["changes"]
    assert (change["rule"], change["before"][0]) == ("same_key", "time zone: Europe/Berlin")
    memory.curate(apply=True)
    assert memory.entries() == ("Ana: owns billing", "Ana: likes tea", "time zone: Europe/Lisbon")


def test_a_page_gives_a_key_no_value(memory: memoranda.Memory) -> None:
    """The value that a person gave it stays, and nothing is proposed."""
    memory.remember("Europe/Berlin", key="time zone")
    memory.curated.apply("memory", [Add("time zone: Mars")], replace(PAGE, explicit=True))
    assert len(memory.entries()) == 2
    assert memory.curate()["changes"] == []


def test_an_entry_that_ends_takes_none_with_it_that_does_not(memory: memoranda.Memory) -> None:
    """What says the same without a last day would be lost on that day."""
    memory.remember(SHORT)
    memory.remember(LONG, until="2w")
    memory.remember(SHORT.rstrip("."), until="2w")
    assert memory.curate()["changes"] == []
