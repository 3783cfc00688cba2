"""Writers of several processes take turns: who had to wait pauses once before the next transaction."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.storage.sqlite import writer_turns
from memoranda.storage.sqlite.writer_turns import WriterTurns


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens in each pause; without sleeping."""
    noted: list[str] = []
    monkeypatch.setattr(writer_turns, "pause", lambda: noted.append("pause"))
    return noted


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    """Two connections to one file, as two processes have them."""
    path = tmp_path / "state.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as first,
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as second,
    ):
        first.execute("PRAGMA journal_mode=WAL")
        yield first, second


Writers = tuple[sqlite3.Connection, sqlite3.Connection]


def test_a_writer_that_is_alone_never_pauses(writers: Writers, pauses: list[str]) -> None:
    """However often it writes."""
    turns, cursor = WriterTurns(), writers[0].cursor()
    for _ in range(3):
        turns.begin(cursor, time.monotonic())
        cursor.execute("COMMIT")
    assert pauses == []


def test_a_writer_that_had_to_wait_gives_way_once(
    writers: Writers, pauses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins when the other has committed, pauses before its next transaction, and then no more."""
    first, second = writers
    turns, cursor = WriterTurns(), second.cursor()
    first.execute("BEGIN IMMEDIATE")

    def commit() -> None:
        pauses.append("pause")
        if first.in_transaction:
            first.execute("COMMIT")

    monkeypatch.setattr(writer_turns, "pause", commit)
    turns.begin(cursor, time.monotonic() + 100)
    cursor.execute("COMMIT")
    assert len(pauses) == 1
    for _ in range(3):
        turns.begin(cursor, time.monotonic() + 100)
        cursor.execute("COMMIT")
    assert len(pauses) == 2


def test_waiting_ends_at_the_deadline(writers: Writers, pauses: list[str]) -> None:
    """With SQLite's own error."""
    first, second = writers
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        WriterTurns().begin(second.cursor(), time.monotonic() - 1)


def test_another_error_is_not_retried(writers: Writers, pauses: list[str]) -> None:
    """A transaction within a transaction is a mistake, not contention."""
    first, _ = writers
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
        WriterTurns().begin(first.cursor(), time.monotonic() + 100)
    assert pauses == []
