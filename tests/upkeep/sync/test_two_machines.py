"""Two machines that share a folder end with the same contents."""

import shutil
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.api.memory import Memory
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.sqlite.database import Database
from memoranda.upkeep.sync_state import SCHEMA
from tests.search.past import BEGIN, tell
from tests.upkeep.sync.machines import Machine, bundles, sent_records, sync_all


@pytest.mark.slow
def test_conversations_items_and_memory_arrive(pair: list[Machine]) -> None:
    """With titles, flags and the archive mark; a second run sends and receives nothing."""
    a, b = pair
    tell(a.db, "s1", ["The plum cake", "needs butter"], title="Cake")
    a.db.set_session_archived("s1", True)
    tell(b.db, "s2", ["Zebra", "crossing"], at=BEGIN + 500)
    b.db.items.put(("notes",), "k", {"text": "v"})
    a.memory.remember("Uses uv.")
    b.memory.remember("Uses ruff.")
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    assert set(a.contents()["sessions"]) == {"s1", "s2"}
    assert a.entries() == {"Uses uv.", "Uses ruff."}
    assert b.db.get_session("s1")["archived"] == 1
    assert b.memory.search("plum cake")
    for machine in pair:
        report = machine.sync()
        assert (report.sent, report.received, report.parts_written) == ({}, {}, 0)


def test_a_received_message_is_two_rows(pair: list[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own and its version: what is read and counted for a conversation does not grow with its messages."""
    first, second = pair
    sync_all(pair, 1)
    executed: list[str] = []
    thread, connect = threading.get_ident(), Database._connect

    def note(statement: str) -> None:
        # What triggers do is shown as comments; the index follows in another thread.
        if threading.get_ident() == thread and not statement.startswith("--"):
            executed.append(statement)

    def traced(database: Database, mode: str = "rw") -> sqlite3.Connection:
        connection = connect(database, mode)
        connection.set_trace_callback(note)
        return connection

    second.close()
    monkeypatch.setattr(Database, "_connect", traced)
    second.memory = memoranda.open(second.home)
    counts = []
    for size in (10, 20, 150):
        name = f"of {size}"
        first.db.create_session(name, "cli")
        first.db.append_messages(name, [{"role": "user", "content": f"{n}"} for n in range(size)])
        first.sync()
        executed.clear()
        assert second.sync().received == {"sessions": 1, "messages": size}
        counts.append(len(executed))
    common = Counter(each[:60] for each in executed).most_common(5)
    # The session that came before is read, too: its version says what this machine has sent.
    assert 0 <= counts[2] - counts[1] - 2 * (150 - 20) < 20, common
    assert counts[2] <= 2 * 150 + 200, common


def test_only_what_changed_is_sent(pair: list[Machine]) -> None:
    """A message that is added to a long conversation is one record."""
    a, b = pair
    tell(a.db, "s1", [f"said {number}" for number in range(50)])
    sync_all(pair, 1)
    b.db.append_message("s1", "user", "and one more")
    assert b.sync().sent["messages"] == 1
    assert a.sync().received == {"messages": 1}
    assert a.contents() == b.contents()


@pytest.mark.slow
def test_a_forgotten_text_is_forgotten_everywhere(pair: list[Machine], folder: Path) -> None:
    """In the record and the memory of the other machine, and in the bundles of both."""
    a, b = pair
    tell(a.db, "s1", ["The code is zanzibar", "noted"])
    a.memory.remember("The zanzibar entry.")
    sync_all(pair, 2)
    b.db.set_session_archived("s1", True)
    b.db.append_message("s1", "user", "zanzibar again")
    sync_all(pair, 2)
    assert "zanzibar" in str(sent_records(folder))
    report = b.memory.forget(text="zanzibar")
    assert any("synchronised" in note for note in report.notes)
    sync_all([b, a], 2)
    assert "zanzibar" not in str(sent_records(folder))
    for machine in pair:
        assert "zanzibar" not in str(machine.contents())
        assert machine.memory.search("zanzibar")["matched"] == "nothing found"
        journal = (machine.home / "memories" / "journal.jsonl").read_text()
        assert "zanzibar" not in journal
    assert a.contents() == b.contents()
    sync_all(pair, 2)
    assert "zanzibar" not in str(a.contents())


@pytest.mark.slow
def test_different_texts_that_two_machines_forget_both_stay_forgotten(pair: list[Machine]) -> None:
    """Neither version of the message may return what the other one has removed."""
    a, b = pair
    tell(a.db, "s1", ["first secretone then secrettwo", "ok"])
    sync_all(pair, 2)
    a.memory.forget(text="secretone")
    b.memory.forget(text="secrettwo")
    sync_all(pair, 3)
    assert a.contents() == b.contents()
    assert "secretone" not in str(a.contents())
    assert "secrettwo" not in str(a.contents())


def test_a_deletion_wins_and_does_not_come_back(pair: list[Machine]) -> None:
    """Also when the other machine has added to the conversation meanwhile."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    sync_all(pair, 2)
    a.db.delete_session("s1")
    b.db.append_message("s1", "user", "three")
    sync_all([b, a], 3)
    assert a.contents()["sessions"] == b.contents()["sessions"] == {}


def test_a_conversation_deleted_before_the_first_run_stays_deleted_here_only(pair: list[Machine]) -> None:
    """The other one's may be another conversation with the same id."""
    a, b = pair
    for machine in pair:
        tell(machine.db, "s1", ["one", "two"])
    a.db.delete_session("s1")
    sync_all(pair, 2)
    assert set(a.contents()["sessions"]) == set()
    assert set(b.contents()["sessions"]) == {"s1"}


@pytest.mark.slow
def test_different_conversations_with_one_id_are_not_mixed(pair: list[Machine]) -> None:
    """Each machine keeps its own under the id, and gets the other one under a new name."""
    a, b = pair
    tell(a.db, "main", ["about apples", "yes"])
    tell(b.db, "main", ["about birds", "no"], at=BEGIN + 77)
    sync_all(pair, 3)
    for machine, own in ((a, "apples"), (b, "birds")):
        sessions = machine.contents()["sessions"]
        assert len(sessions) == 2
        assert own in str(sessions.pop("main")["messages"])
        ((name, other),) = sessions.items()
        assert name.startswith("main~")
        assert own not in str(other["messages"])
        assert len(other["messages"]) == 2


def _imported(memory: Memory, started_at: float) -> Any:
    rows = [
        {"role": role, "content": f"said {number}", "timestamp": BEGIN + number, "external_id": f"e{number}"}
        for number, role in enumerate(("user", "assistant"))
    ]
    session = {"id": "claude-code:1", "source": "claude-code", "started_at": started_at, "messages": rows}
    return memory.sessions.import_sessions([session])


@pytest.mark.slow
def test_a_transcript_that_both_have_imported_is_one(pair: list[Machine]) -> None:
    """Also where an import had no time for the start, so that each has its own."""
    for number, machine in enumerate(pair):
        _imported(machine.memory, BEGIN + number)
    sync_all(pair, 3)
    for machine in pair:
        ((_, session),) = machine.contents()["sessions"].items()
        assert len(session["messages"]) == 2


@pytest.mark.slow
def test_two_conversations_with_one_title_get_different_titles_everywhere(pair: list[Machine]) -> None:
    """The older one keeps it."""
    a, b = pair
    tell(a.db, "s1", ["one"], title="Cake")
    tell(b.db, "s2", ["two"], title="Cake", at=BEGIN + 9)
    sync_all(pair, 3)
    assert a.contents() == b.contents()
    assert a.db.get_session_title("s1") == "Cake"
    assert str(a.db.get_session_title("s2")).startswith("Cake (")


@pytest.mark.slow
def test_a_home_that_was_copied_becomes_another_machine(pair: list[Machine], tmp_path: Path) -> None:
    """Both copies write, and neither overwrites or repeats what the other one has written."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    sync_all(pair, 2)
    a.close()
    shutil.copytree(a.home, tmp_path / "c")
    first, copy = Machine(a.home, a.folder), Machine(tmp_path / "c", a.folder)
    pair[0] = first
    tell(first.db, "s3", ["three"], at=BEGIN + 3)
    first.sync()
    tell(copy.db, "s4", ["four"], at=BEGIN + 4)
    sync_all([copy, first, b], 2)
    assert first.contents() == copy.contents() == b.contents()
    assert len(b.contents()["sessions"]["s1"]["messages"]) == 2
    assert len(bundles(a.folder)) == 3
    copy.close()


@pytest.mark.slow
def test_a_home_without_its_state_recognises_its_messages(pair: list[Machine]) -> None:
    """After its tables were lost nothing is doubled."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    b.memory.remember("Uses uv.")
    sync_all(pair, 2)
    with closing(HomeDatabase(a.home, SCHEMA)) as database, database.open().writing() as connection:
        for table in SCHEMA.tables:
            connection.execute(f"DELETE FROM {table.name}")
    sync_all(pair, 3)
    assert a.contents() == b.contents()
    assert len(a.contents()["sessions"]["s1"]["messages"]) == 2


@pytest.mark.slow
def test_forgetting_by_subject_reaches_the_other_machine(pair: list[Machine]) -> None:
    """A conversation that is forgotten is deleted there."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    sync_all(pair, 2)
    b.memory.forget(session="s1")
    sync_all([b, a], 1)
    assert a.contents()["sessions"] == {}
