"""Deleted sessions on the disk: their names stay, in the same commit, through rescue; no word does."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import MemorandaError
from memoranda.memory.record.health import salvage
from memoranda.memory.record.store import SessionStore, open_store
from tests.contracts.store.assertions import say


def _filled(path: Path) -> SessionStore:
    store = open_store(path)
    for name in ("a", "b"):
        store.sessions.create_session(name, "cli", title=f"Title of {name}")
        say(store, name, f"words of {name}")
    return store


def test_a_session_goes_only_together_with_the_note_that_it_went(path: Path) -> None:
    """When the note cannot be written, nothing is deleted."""
    with _filled(path) as store:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "CREATE TRIGGER no_note BEFORE INSERT ON deleted_sessions BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        with pytest.raises((MemorandaError, sqlite3.Error), match="no room"):
            store.deletion.delete_session("a")
        assert [each["content"] for each in store.messages.get_messages("a")] == ["words of a"]


def test_nothing_but_its_name_is_left_of_a_deleted_session(path: Path) -> None:
    """Neither a word nor its title is in the file."""
    with _filled(path) as store:
        store.deletion.delete_session("a")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM deleted_sessions").fetchall() == [("a",)]
    assert all(text not in path.read_bytes() for text in (b"words of a", b"Title of a"))


@pytest.mark.slow
def test_a_rescued_store_still_knows_what_was_deleted(path: Path, tmp_path: Path) -> None:
    """What was lost with the damage does not count as deleted, so that it can be imported again."""
    with _filled(path) as store:
        store.deletion.delete_session("a")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM messages")
        connection.execute("DELETE FROM sessions WHERE id = 'b'")
        connection.commit()
    salvage(path, tmp_path / "damaged")
    with open_store(path) as store:
        assert store.deletion.deleted_sessions(["a", "b"]) == {"a"}
