"""Notes: kept without a limit, found by search and recall, and where entries go that have no room in a prompt."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.home import config
from memoranda.memory.curated import change_history
from memoranda.memory.curated.facts import seconds_of
from memoranda.memory.curated.moves import move_entry, write_notes
from memoranda.memory.curated.operations import Add, MemoryReceipt
from memoranda.memory.curated.settings import project_target
from memoranda.support.home import Home
from memoranda.support.origin import PERSON, Origin

pytestmark = pytest.mark.slow

_NOTE = "The invoice archive of Globex is on the server heron."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[memoranda.Memory]:
    with memoranda.open(tmp_path / "home") as opened:
        yield opened


def _note(memory: memoranda.Memory, text: str = _NOTE) -> None:
    session = memory.session()
    session.record("user", f"Please note: {text}")
    answer = session.call("memory", {"target": "notes", "action": "add", "content": text})
    assert answer["success"], answer


def test_a_note_is_found_by_search_and_recall_and_in_no_prompt(memory: memoranda.Memory) -> None:
    """With its date and origin; what has nothing to do with it finds nothing."""
    _note(memory)
    assert "Globex" not in memory.session().prompt
    found = memory.call("session_search", {"query": "Globex invoice archive"})["notes"]
    assert [note["text"] for note in found] == [_NOTE] and found[0]["noted"]
    assert _NOTE in memory.recall("Where is the invoice archive of Globex?").block()
    assert "notes" not in memory.call("session_search", {"query": "weather in Lisbon"})


def test_an_expired_entry_that_became_a_note_is_found_and_says_so(memory: memoranda.Memory) -> None:
    """Nothing is lost because its last day is over, and nothing of it looks current."""
    memory.remember(_NOTE, until="2020-01-31")
    memory.curate(apply=True)
    assert memory.entries() == ()
    (found,) = memory.call("session_search", {"query": "Globex invoice archive"})["notes"]
    assert (found["text"], found["until"]) == (_NOTE, "2020-01-31")
    assert "true until 2020-01-31" in memory.recall("Where is the invoice archive of Globex?").block()


def test_items_that_a_program_keeps_under_notes_are_no_notes(memory: memoranda.Memory) -> None:
    """A namespace of that name is what many programs choose."""
    memory.items.put(("notes", "work"), "k", {"text": _NOTE})
    memory.items.put(("notes", "memory"), "k", {"text": _NOTE})
    assert "notes" not in memory.call("session_search", {"query": "Globex invoice archive"})


def test_notes_leave_a_full_answer_of_a_search_within_its_size(memory: memoranda.Memory) -> None:
    """The conversations get what room the notes leave."""
    for number in range(3):
        with memory.session() as session, session.turn(f"Globex invoice archive {number}?") as turn:
            turn.done(f"On the server heron {number}. " + "The archive of Globex has every invoice. " * 200)
        _note(memory, f"The Globex invoice archive {number} " + "is on the server heron " * 15)
    answer = memory.call("session_search", {"query": "Globex invoice archive"})
    assert answer["success"] and len(answer["notes"]) == 3 and answer["results"]


def test_a_moved_entry_is_in_notes_and_one_undo_brings_it_back(memory: memoranda.Memory) -> None:
    """By the tool, in one call; and from the notes to a file."""
    memory.remember(_NOTE)
    with memory.session() as session:
        answer = session.call("memory", {"target": "memory", "action": "move", "old_text": "Globex", "to": "notes"})
    assert answer["success"] and memory.entries() == () and memory.curated.notes is not None
    assert [note.text for note in memory.curated.notes.all()] == [_NOTE]
    change_history.undo(memory.curated, None, PERSON)
    assert memory.entries() == (_NOTE,) and memory.curated.notes.all() == []
    for source, to in (("memory", "notes"), ("notes", "user")):
        call = {"target": source, "action": "move", "old_text": "Globex", "to": to}
        with memory.session() as session:
            assert session.call("memory", call)["success"]
    assert memory.entries("user") == (_NOTE,) and memory.curated.notes.all() == []


def test_a_note_that_becomes_an_entry_keeps_its_last_day_and_its_age(memory: memoranda.Memory) -> None:
    """And the entry that becomes a note is as old as it was, wherever the note is shown."""
    assert isinstance(write_notes(memory.curated, [Add(_NOTE, until="2031-01-31")], PERSON), MemoryReceipt)
    assert memory.curated.notes is not None
    (note,) = memory.curated.notes.all()
    assert isinstance(move_entry(memory.curated, "notes", "Globex", "memory", PERSON), MemoryReceipt)
    (entry,) = memory.curated.facts("memory")
    assert (entry.until, entry.written) == ("2031-01-31", seconds_of(note.at))
    change_history.confirm_entry(memory.curated, ("memory",), "Globex", PERSON)
    assert isinstance(
        move_entry(memory.curated, "memory", "Globex", "notes", Origin("agent", explicit=True)), MemoryReceipt
    )
    (again,) = memory.curated.notes.all()
    assert again.at > note.at and again.written == note.at.replace("Z", "+00:00")
    assert (again.as_entry().actor, again.as_entry().confirmed is None) == ("person", False)


def test_a_move_between_files_keeps_the_facts_and_is_undone_as_one(memory: memoranda.Memory) -> None:
    """Both files are as before."""
    memory.remember("The API is frozen.", until="2999-01-31")
    assert memory.call("memory", {"action": "move", "old_text": "frozen", "to": "user"})["success"]
    assert memory.entries() == () and memory.curated.facts("user")[0].until == "2999-01-31"
    change_history.undo(memory.curated, None, PERSON)
    assert memory.entries() == ("The API is frozen.",) and memory.entries("user") == ()


def _fill(memory: memoranda.Memory) -> None:
    for number in range(4):
        assert memory.remember(f"Fact {number} " + "about heron " * 40)["success"]
    assert memory.remember("Prefers short answers.")["success"]


def test_a_full_file_refuses_and_offers_the_move(memory: memoranda.Memory) -> None:
    """As by default; nothing is changed."""
    _fill(memory)
    answer = memory.remember("Fact 9 " + "about crane " * 40)
    assert answer["reason"] == "over_budget" and 'to "notes"' in answer["error"] and len(memory.entries()) == 5


def test_with_make_room_the_oldest_of_least_use_moves_to_notes(tmp_path: Path) -> None:
    """The receipt says what moved; preferences stay; one undo restores the file."""
    config.set_value(Home.at(tmp_path), "memory.when_full", "make_room")
    with memoranda.open(tmp_path) as memory:
        _fill(memory)
        before = memory.entries()
        answer = memory.remember("Fact 9 " + "about crane " * 40)
        assert answer["success"] and answer["moved_to_notes"] == [before[0]]
        assert memory.entries() == (*before[1:], ("Fact 9 " + "about crane " * 40).strip())
        assert memory.curated.notes is not None and [note.text for note in memory.curated.notes.all()] == [before[0]]
        change_history.undo(memory.curated, None, PERSON)
        assert memory.entries() == before and memory.curated.notes.all() == []


def test_with_make_room_a_move_and_an_approval_make_room_too(tmp_path: Path) -> None:
    """One undo takes back the move, and what it gave to notes."""
    config.set_value(Home.at(tmp_path), "memory.when_full", "make_room")
    with memoranda.open(tmp_path) as memory:
        _fill(memory)
        memory.remember("Fact 9 " + "about crane " * 40, "user")
        before = memory.entries(), memory.entries("user")
        with memory.session() as session:
            answer = session.call("memory", {"target": "user", "action": "move", "old_text": "crane", "to": "memory"})
        assert answer["success"] and answer["moved_to_notes"] == [before[0][0]]
        assert memory.entries() == (*before[0][1:], *before[1]) and memory.entries("user") == ()
        change_history.undo(memory.curated, None, PERSON)
        assert (memory.entries(), memory.entries("user")) == before and memory.curated.notes is not None
        assert memory.curated.notes.all() == []
        proposal = memory.curated.proposals.add("memory", [Add("Fact 8 " + "about stork " * 40)], PERSON, [None])
        assert isinstance(memory.curated.approve(proposal), MemoryReceipt)
        assert len(memory.curated.notes.all()) == 1


def test_forgetting_a_text_reaches_notes_and_the_memory_of_a_project(memory: memoranda.Memory) -> None:
    """Also what the journal says about a move; nothing of it is left in the home."""
    project = "project:github.com/acme/heron"
    _note(memory)
    memory.remember("Globex pays on rack 14.", project)
    memory.remember("Globex is a customer.")
    memory.call("memory", {"action": "move", "old_text": "customer", "to": "notes"})
    report = memory.forget("Globex")
    assert not report.left
    assert memory.entries(project) == () and memory.curated.notes is not None
    assert [note.text for note in memory.curated.notes.all() if "Globex" in note.text] == []


def test_notes_and_project_memory_are_in_tables_too(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL: a move, a curator's run over several targets, and one undo of it."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    project = project_target("github.com/acme/heron")
    with memoranda.open(tmp_path) as memory:
        for target in ("memory", project):
            for more in ("", " It answers with JSON."):
                memory.remember(f"The API listens on port 8080.{more}", target)
        before = memory.entries(), memory.entries(project)
        assert len(memory.curate(apply=True)["changes"]) == 2 and memory.curated.notes is not None
        assert {note.owner for note in memory.curated.notes.all()} == {"memory", project}
        change_history.undo(memory.curated, None, PERSON)
        assert (memory.entries(), memory.entries(project)) == before and memory.curated.notes.all() == []
