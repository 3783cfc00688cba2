"""Maps SQLite's errors to Memoranda's, which say what to do, and retries statements after temporary errors."""

import random
import sqlite3
import time
from pathlib import Path

from memoranda.errors import CorruptStoreError, LockTimeoutError, SessionError, StorageError

CONTENTION = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def storage_error(error: sqlite3.Error, path: Path, wait: float) -> StorageError:
    """The error of Memoranda for one of SQLite's; `wait` is how many seconds the caller tried."""
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    if code in CONTENTION:
        return LockTimeoutError(f"Another process has kept {path} locked for {wait:g} s. Nothing was written.")
    if code in _DAMAGE:
        return CorruptStoreError(
            f"{path} is damaged or not a database ({error}). It was not changed. "
            "'memoranda doctor' says how to save its content."
        )
    if code == sqlite3.SQLITE_FULL:
        return StorageError(f"The disk is full: nothing was written to {path}.")
    if extended == sqlite3.SQLITE_READONLY_DBMOVED:
        return StorageError(f"{path} was moved or replaced while it was open. Nothing was written; open it again.")
    return StorageError(f"{path} cannot be used: {error}.")


def encoding_error(error: UnicodeEncodeError) -> SessionError:
    """The error for a text that is not valid Unicode."""
    return SessionError(f"{error.object[:60]!r} contains an unpaired surrogate, which no database can store.")


def retry(connection: sqlite3.Connection | sqlite3.Cursor, statement: str, deadline: float) -> sqlite3.Cursor:
    """Execute a statement; retry while another process holds the lock, until the deadline."""
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in CONTENTION or time.monotonic() >= deadline:
                raise
            pause()


def pause() -> None:
    """Sleep for a random short time, so that waiting writers do not retry together."""
    time.sleep(random.uniform(0.002, 0.030))
