"""Opens a SQLite file with a write-ahead log, where the file system supports that."""

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from memoranda.errors import CorruptStoreError, LockTimeoutError, NewerStoreError, StorageError
from memoranda.storage.error_mapping import inherited_error
from memoranda.storage.fork_safety import is_inherited
from memoranda.storage.orphaned_wal import refuse_missing_main_file
from memoranda.storage.sqlite.file_locks import refuse_without_locks
from memoranda.storage.sqlite.writer_turns import busy_timeout, pause, retry

_Opened = TypeVar("_Opened")
_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS = 1000
_EMPTY_TIMEOUT_MS = 20
_NO_SHARED_MEMORY = {
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMLOCK,
}
# Paths for which the warning was logged.
_warned: set[Path] = set()


def open_with_retries(open_once: Callable[[], _Opened], path: Path, wait: float) -> _Opened:
    """Open a database; retry for `wait` seconds, because SQLite does not always wait for another process.

    That one may be creating or closing the file.
    """
    deadline, tries = time.monotonic() + wait, 0
    while True:
        try:
            return open_once()
        except (CorruptStoreError, NewerStoreError):
            raise
        except StorageError as error:
            tries += 1
            if tries == 1:
                refuse_without_locks(path)
            if not isinstance(error, LockTimeoutError) or time.monotonic() >= deadline:
                raise
            pause()


def connect(path: Path, options: str) -> sqlite3.Connection:
    """Open an existing file; `options` are those of SQLite's URI."""
    # Checked every time: SQLite would delete the log of a file that has become empty.
    refuse_missing_main_file(path)
    if is_inherited(path):
        raise inherited_error(path)
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}",
        uri=True,
        timeout=CONNECT_TIMEOUT_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.execute("PRAGMA foreign_keys=1")
    return connection


def prepare_connection(
    connect: Callable[[], sqlite3.Connection], prepare: Callable[[sqlite3.Connection], sqlite3.Connection]
) -> sqlite3.Connection:
    """Connect and prepare; a file system without shared memory needs a connection that locks the file exclusively.

    SQLite only notices with a read that it cannot map the shared memory of a log, and the connection is useless then.
    """
    try:
        return prepare(connect())
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode not in _NO_SHARED_MEMORY:
            raise
    connection = connect()
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    return prepare(connection)


def choose_journal(connection: sqlite3.Connection, path: Path, deadline: float) -> str:
    """Enable the write-ahead log if that is possible; return the journal mode that is in use."""

    def ask(statement: str) -> str:
        return str(retry(connection, statement, deadline).fetchone()[0])

    if ask("PRAGMA locking_mode") == "exclusive":
        # There is no shared memory. This copies what a log contains into the file.
        mode = ask("PRAGMA journal_mode=DELETE")
        ask("PRAGMA locking_mode=NORMAL")
    else:
        mode = _ask_for_log(ask, path)
    # This read releases an exclusive lock, and fails if the shared memory of a log cannot be mapped.
    ask("SELECT count(*) FROM sqlite_master")
    if mode != "wal" and path not in _warned:
        _warned.add(path)
        _log.warning(
            "%s is on a file system without shared memory (a network drive?), so SQLite's write-ahead log "
            "cannot be used. Everything is still durable, but readers and writers wait for each other.", path,
        )  # fmt: skip
    return mode


def _ask_for_log(ask: Callable[[str], str], path: Path) -> str:
    mode = ask("PRAGMA journal_mode")
    # An attempt in a file that other processes use would make their reads fail until it is given up.
    if mode == "wal" or (ask("SELECT count(*) FROM sqlite_master") != "0" and not supports_log(path)):
        return mode
    try:
        return ask("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
            raise
        return ask("PRAGMA journal_mode=DELETE")


def empty_log(connection: sqlite3.Connection) -> bool:
    """Checkpoint the log and truncate it; False while a reader or another checkpoint needs it."""
    with busy_timeout(connection, _EMPTY_TIMEOUT_MS):
        ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not busy


def free_log_space(connection: sqlite3.Connection, error: sqlite3.Error) -> None:
    """Empty the log if an error says that the disk is full, which frees its space for the next try."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def supports_log(path: Path) -> bool:
    """Whether a log works beside a file, tried with another file."""
    probe = Path(f"{path}-probe")
    try:
        with closing(sqlite3.connect(probe, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return str(mode) == "wal"
    except sqlite3.Error:
        return False
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{probe}{ending}").unlink(missing_ok=True)
