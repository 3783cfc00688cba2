"""Returns the space of deleted rows in a SQLite file to the file system: in short steps, or by rewriting the file.

A new file can shrink in steps; SQLite then moves pages from the end of the file to free places. A file that an earlier
version created must be rewritten once.
"""

import sqlite3
import time
from collections.abc import Callable

from memoranda.storage.error_mapping import is_contention
from memoranda.storage.sqlite.writer_turns import busy_timeout, pause

SHRINK_IN_STEPS = "PRAGMA auto_vacuum=INCREMENTAL"
_INCREMENTAL = 2
_STEPS_BETWEEN_CHECKS = 10_000
# A step of so many pages takes a few milliseconds; then other writers have a chance.
_PAGES = 100
_LOCK_TIMEOUT_MS = 1000
_PAUSE = 0.005


def rewrite_file(connection: sqlite3.Connection, max_seconds: float | None) -> bool:
    """Rewrite the file; give up after `max_seconds`, which leaves it as it is, and return False."""
    connection.execute(SHRINK_IN_STEPS)
    if max_seconds is not None:
        deadline = time.monotonic() + max_seconds
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    try:
        with busy_timeout(connection, _LOCK_TIMEOUT_MS):
            connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return False
    finally:
        connection.set_progress_handler(None, 0)
    return True


def release_space(
    use: Callable[[Callable[[sqlite3.Connection], int]], int], stopped: Callable[[], bool], wait: float
) -> int:
    """Return free pages to the file system until none is left, or `stopped`; returns how many pages are still free.

    `use` calls a function with the connection that writes.
    """
    free = use(_count_free_pages)
    while free and not stopped():
        left = use(lambda connection: _release_pages(connection, time.monotonic() + wait))
        if left >= free:
            # The file cannot shrink in steps, or others delete faster.
            return left
        free = left
        time.sleep(_PAUSE)
    return free


def read_page_size(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA page_size").fetchone()[0])


def _count_free_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def _release_pages(connection: sqlite3.Connection, deadline: float) -> int:
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
        return _count_free_pages(connection)
    while True:
        try:
            # `execute` would release a single page: the statement must be stepped to its end.
            connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")
            return _count_free_pages(connection)
        except sqlite3.OperationalError as error:
            if not is_contention(error) or time.monotonic() >= deadline:
                raise
            pause()
