"""What deleted sessions occupied is given back in short steps, and no word of them stays in any file."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.sqlite import database as sqlite_database
from memoranda.storage.sqlite.engine import SqliteEngine
from tests.memory.record.conftest import file_bytes

pytestmark = pytest.mark.slow

DAY = 86_400.0
TEXT = "a sentence that nothing else contains " * 40


def _fill(store: SessionStore, count: int = 60) -> None:
    assert isinstance(store.engine, SqliteEngine)
    assert store.engine._writer is not None
    store.engine._writer.execute("PRAGMA synchronous=OFF")
    for number in range(count):
        then = time.time() - (100 if number % 2 else 1) * DAY
        store.sessions.create_session(f"s{number}", "cli", started_at=then)
        kept = "an ordinary sentence " * 60
        messages = [{"role": "user", "content": TEXT if number % 2 else kept, "timestamp": then}] * 30
        store.messages.append_messages(f"s{number}", messages)
        store.sessions.end_session(f"s{number}", "done")


def _pragma(path: Path, name: str) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_the_file_shrinks_by_what_was_pruned(path: Path) -> None:
    """Half of the sessions are deleted, and so is nearly half of the file; what stays is undamaged."""
    with open_store(path) as store:
        _fill(store)
        store.deletion.empty_log()
        before = path.stat().st_size
        assert store.deletion.prune_sessions(40) == 30
        assert store.deletion.release_space() == 0
        assert path.stat().st_size < before * 0.65
        assert _pragma(path, "freelist_count") == 0
        assert store.maintenance.check_integrity() == []
        assert store.maintenance.miscounted_sessions() == []
        assert TEXT[:38].encode() not in file_bytes(path)
        assert len(store.messages.get_messages("s2")) == 30


def test_space_is_released_in_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process writes between two of them, and one that is stopped leaves the rest."""
    monkeypatch.setattr(sqlite_database, "_PAGES_PER_STEP", 5)
    with open_store(path) as store, open_store(path) as other:
        _fill(store)
        store.deletion.prune_sessions(40)
        free = _pragma(path, "freelist_count")
        asked: list[int] = []

        def stop_after_three() -> bool:
            asked.append(other.messages.append_message("s2", "user", "meanwhile"))
            return len(asked) > 3

        assert store.deletion.release_space(stop_after_three) > 0
        assert 0 < _pragma(path, "freelist_count") <= free - 15
        assert store.deletion.release_space() == 0
        assert store.maintenance.check_integrity() == []
        assert [row["content"] for row in store.messages.get_messages("s2")][-len(asked) :] == ["meanwhile"] * len(
            asked
        )


def test_a_prune_is_many_short_transactions(path: Path) -> None:
    """Each deletes a few whole conversations, so that a turn that is being recorded hardly waits."""
    with open_store(path) as store:
        _fill(store, 120)
        assert isinstance(store.engine, SqliteEngine)
        assert store.engine._writer is not None
        statements: list[str] = []
        store.engine._writer.set_trace_callback(statements.append)
        assert store.deletion.prune_sessions(40) == 60
        store.engine._writer.set_trace_callback(None)
    transactions = "\n".join(statements).split("COMMIT")
    assert max(transaction.count("DELETE FROM sessions") for transaction in transactions) <= 20


def test_a_stopped_prune_deletes_no_more(path: Path) -> None:
    """What it has deleted stays deleted."""
    with open_store(path) as store:
        _fill(store, 120)
        answers = iter([False, True])
        count = store.deletion.prune_sessions(40, stopped=lambda: next(answers))
        assert 0 < count < 60
        assert len(store.deletion.list_prune_candidates(40)) == 60 - count
