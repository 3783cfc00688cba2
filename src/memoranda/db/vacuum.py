"""Rewrites a SQLite file without the space of deleted rows."""

import sqlite3
import time

_STEPS_BETWEEN_CHECKS = 10_000


def rewrite_file(connection: sqlite3.Connection, max_seconds: float | None) -> bool:
    """Rewrite the file; give up after `max_seconds`, which leaves it as it is, and return False."""
    if max_seconds is None:
        connection.execute("VACUUM")
        return True
    deadline = time.monotonic() + max_seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    try:
        connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return False
    finally:
        connection.set_progress_handler(None, 0)
    return True
