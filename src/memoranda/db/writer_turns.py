"""How the writers of several processes take turns at one SQLite file.

SQLite has no queue for writers: each tries again until the file is free, and the process that has just written is the
first to know that it is. So waiting writers try often, and a writer that had to wait for its last transaction pauses
before its next one, in which time another gets its turn.
"""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

CONTENTION = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class WriterTurns:
    """Begins the transactions of one connection."""

    def __init__(self) -> None:
        self._had_to_wait = False

    def begin(self, cursor: sqlite3.Cursor, deadline: float) -> None:
        """Begin a transaction that writes; waits for other processes until the deadline."""
        if self._had_to_wait:
            self._had_to_wait = False
            pause()
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_contention(error):
                raise
            self._had_to_wait = True
            pause()
            retry(cursor, "BEGIN IMMEDIATE", deadline)


def retry(connection: sqlite3.Connection | sqlite3.Cursor, statement: str, deadline: float) -> sqlite3.Cursor:
    """Execute a statement; retry while another process holds the lock, until the deadline."""
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not is_contention(error) or time.monotonic() >= deadline:
                raise
            pause()


def is_contention(error: sqlite3.Error) -> bool:
    """Whether an error says that another process holds a lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in CONTENTION


def pause() -> None:
    """Sleep for a random short time, so that waiting writers do not retry together."""
    time.sleep(random.uniform(0.0005, 0.003))


@contextmanager
def busy_timeout(connection: sqlite3.Connection, milliseconds: int) -> Iterator[None]:
    """Let SQLite itself wait for locks in the block; otherwise the connection that writes retries as above."""
    connection.execute(f"PRAGMA busy_timeout={milliseconds}")
    try:
        yield
    finally:
        connection.execute("PRAGMA busy_timeout=0")
