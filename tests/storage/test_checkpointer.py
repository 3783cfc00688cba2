"""The log is checkpointed by one thread over one connection, which end when nothing is written."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError
from memoranda.storage.sqlite import write_ahead_log
from memoranda.storage.sqlite.database import Database
from memoranda.storage.sqlite.write_ahead_log import WalCheckpointer
from tests.timing import wait_until

pytestmark = pytest.mark.slow


class Log:
    """A database with a log, and every connection that was opened for a checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = sqlite3.connect(path, isolation_level=None)
        self.writer.execute("PRAGMA journal_mode=WAL")
        self.writer.execute("PRAGMA wal_autocheckpoint=0")
        self.writer.execute("CREATE TABLE rows (text)")
        self.opened: list[str] = []
        self.checkpoints: list[str] = []
        self.threads: set[threading.Thread] = set()

    def connect(self) -> sqlite3.Connection:
        self.opened.append(threading.current_thread().name)
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.set_trace_callback(self.note)
        return connection

    def note(self, statement: str) -> None:
        if "RESTART" in statement:
            self.threads.add(threading.current_thread())
            self.checkpoints.append(statement)

    @property
    def is_followed(self) -> bool:
        """Whether a thread that checkpointed this log still runs; other stores of the process have their own."""
        return any(thread.is_alive() for thread in self.threads)

    def write(self) -> None:
        self.writer.execute("INSERT INTO rows VALUES (?)", ("x" * 5000,))

    def close(self) -> None:
        self.writer.close()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    monkeypatch.setattr(write_ahead_log, "LARGE_LOG", 1)
    monkeypatch.setattr(write_ahead_log, "_CHECK_EVERY", 1)
    opened = Log(tmp_path / "state.db")
    yield opened
    opened.close()


def test_checkpoints_share_a_thread(log: Log) -> None:
    """Starting one costs as much as several appends."""
    checkpoints = WalCheckpointer(log.path)
    for number in range(5):
        log.write()
        checkpoints.note_commit(log.connect)
        wait_until(lambda number=number: len(log.checkpoints) > number)  # type: ignore[misc]
    assert len(log.threads) == 1
    checkpoints.close()
    assert not log.is_followed


def test_the_thread_ends_when_nothing_is_written(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next large log starts another one."""
    monkeypatch.setattr(write_ahead_log, "_IDLE_SECONDS", 0.01)
    checkpoints = WalCheckpointer(log.path)
    for number in (1, 2):
        log.write()
        checkpoints.note_commit(log.connect)
        wait_until(lambda number=number: len(log.checkpoints) == number and not log.is_followed)  # type: ignore[misc]
        assert len(log.opened) == number
    checkpoints.close()


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("unable to open database file"), CorruptStoreError("state.db is missing.")]
)
def test_a_failed_checkpoint_is_tried_again_with_a_new_connection(
    log: Log, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """A warning says so, and the thread stays."""
    checkpoints = WalCheckpointer(log.path)

    def refuse() -> sqlite3.Connection:
        log.opened.append("refused")
        raise error

    fail = [True]
    connect = lambda: refuse() if fail[0] else log.connect()  # noqa: E731
    log.write()
    checkpoints.note_commit(connect)
    wait_until(lambda: log.opened == ["refused"] and "could not be checkpointed" in caplog.text)
    fail[0] = False
    checkpoints.note_commit(connect)
    wait_until(lambda: len(log.checkpoints) == 1)
    checkpoints.close()


def test_the_log_restarts_although_a_writer_hardly_pauses(log: Log) -> None:
    """A restart that finds a writer at work is tried again at once, not only when the log has grown further."""
    checkpoints = WalCheckpointer(log.path)
    log.write()
    log.writer.execute("BEGIN IMMEDIATE")
    checkpoints.note_commit(log.connect)
    wait_until(lambda: len(log.checkpoints) >= 2)
    log.writer.execute("COMMIT")
    checkpoints.close()


def test_the_log_is_found_behind_a_link(tmp_path: Path, log: Log) -> None:
    """SQLite keeps it beside the file itself."""
    link = tmp_path / "link.db"
    link.symlink_to(log.path)
    checkpoints = WalCheckpointer(link)
    log.write()
    checkpoints.note_commit(log.connect)
    wait_until(lambda: len(log.checkpoints) == 1)
    checkpoints.close()


def test_a_log_is_checkpointed_again_only_when_it_is_large_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite keeps the file of a log that restarts, and its size says nothing about what is in it."""
    monkeypatch.setattr(write_ahead_log, "LARGE_LOG", 100_000)
    monkeypatch.setattr(write_ahead_log, "_CHECK_EVERY", 1)
    done: list[sqlite3.Connection] = []
    store = Database(tmp_path / "state.db", application_id=1)
    store._checkpoints.after_checkpoint = done.append

    def write(size: int) -> None:
        with store.writing() as connection:
            connection.execute("INSERT INTO rows VALUES (?)", ("x" * size,))

    with store.writing() as connection:
        connection.execute("CREATE TABLE rows (text)")
    write(200_000)
    wait_until(lambda: len(done) >= 1)
    for _ in range(3):
        write(100)
    write(200_000)
    wait_until(lambda: len(done) >= 2)
    store.close()
    assert len(done) == 2
