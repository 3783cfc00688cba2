"""The record says which rows changed since they were sent; what was never changed needs no version."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.record.messages import Messages
from memoranda.storage.home_database import HomeDatabase
from memoranda.upkeep.sync.synchroniser import synchronise
from memoranda.upkeep.sync_state import SCHEMA
from tests.search.past import BEGIN, tell
from tests.upkeep.sync.machines import Machine, sent_records, sync_all


def _versions(machine: Machine) -> list[Any]:
    with closing(sqlite3.connect(machine.home / "state.db")) as connection:
        return connection.execute("SELECT gid, message_id FROM message_versions ORDER BY message_id").fetchall()


@pytest.mark.slow
def test_a_message_has_a_version_only_if_it_came_or_changed(pair: list[Machine]) -> None:
    """The machine that recorded the messages has one row, of the message that it has rewound after sending it."""
    a, b = pair
    tell(a.db, "s1", ["one", "two", "three", "four"])
    sync_all(pair, 2)
    assert (_versions(a), len(_versions(b))) == ([], 4)
    last = a.db.get_messages("s1")[-1]["id"]
    a.db.edits.redact_message(last)
    assert _versions(a) == [(f"{a.machine_id()}:{last}", last)]
    sync_all(pair, 2)
    assert a.contents() == b.contents()


@pytest.mark.slow
def test_what_another_program_changes_with_sql_travels(pair: list[Machine]) -> None:
    """Hermes may use the same file; its changes and deletions reach the other machine."""
    a, b = pair
    tell(a.db, "s1", ["one", "two", "three"])
    sync_all(pair, 2)
    with closing(sqlite3.connect(a.home / "state.db")) as connection:
        connection.execute("UPDATE messages SET content = 'uno' WHERE content = 'one'")
        connection.execute("DELETE FROM messages WHERE content = 'three'")
        connection.commit()
    sync_all(pair, 2)
    assert [row["content"] for row in b.db.get_messages("s1")] == ["uno", "two"]


@pytest.mark.slow
def test_a_change_elsewhere_does_not_return_a_text_that_was_removed(pair: list[Machine]) -> None:
    """Both have imported it; one has removed a text before its first run, the other one has changed a flag since."""
    a, b = pair
    rows = [
        {"role": "user", "content": f"said {number} zanzibar", "timestamp": BEGIN + number, "external_id": f"e{number}"}
        for number in range(2)
    ]
    for machine in pair:
        machine.db.import_sessions([{"id": "imported", "source": "cli", "started_at": BEGIN, "messages": rows}])
    b.memory.forget(text="zanzibar")
    a.sync()
    a.db.rewind_to_message("imported", a.db.get_messages("imported")[0]["id"])
    a.sync(rewrite=True)
    sync_all([b, a], 2)
    assert "zanzibar" not in str(a.contents()) + str(b.contents())
    assert a.contents() == b.contents()


def test_no_other_part_of_the_home_waits_for_a_run(pair: list[Machine]) -> None:
    """While bundles are read, others write to `home.db`."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    a.sync()
    steps: list[str] = []

    def write(step: str) -> None:
        with closing(HomeDatabase(Path(b.home), SCHEMA, wait=0.1)) as database, database.open().writing() as connection:
            connection.execute("DELETE FROM sync_state WHERE name = 'of another part'")
        steps.append(step)

    synchronise(b.home, b.db, b.memory.curated, b.folder, progress=write)
    assert any(step.startswith("Merging") for step in steps)
    assert a.contents() == b.contents()


def test_a_recorded_message_travels_with_its_fields_and_names_only(pair: list[Machine]) -> None:
    """What nearly all messages have in common is not written, read and checked for each; a rewound one says so."""
    a, b = pair
    tell(a.db, "s1", ["one", "two", "three"])
    a.db.rewind_to_message("s1", a.db.get_messages("s1")[-1]["id"])
    a.sync()
    messages = [sorted(record) for record in sent_records(a.folder) if record.get("t") == "message"]
    plain = ["gid", "key", "m", "n", "t"]
    assert messages == [plain, plain, sorted([*plain, "flags"])]
    sync_all(pair, 2)
    assert a.contents() == b.contents()


def test_messages_that_arrive_are_inserted_together(pair: list[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement for each would cost more than the rows."""
    a, b = pair
    tell(a.db, "s1", [f"sentence {number}" for number in range(50)])
    a.sync()
    monkeypatch.setattr(Messages, "insert", None)
    b.sync()
    assert len(b.db.get_messages("s1")) == 50
