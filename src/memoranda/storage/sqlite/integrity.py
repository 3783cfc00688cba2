"""Lets SQLite check a file; the check can be interrupted."""

import sqlite3

_STEPS_BETWEEN_SIGNALS = 100_000
_MAX_PROBLEMS = 20


def find_damage(connection: sqlite3.Connection, thorough: bool) -> list[str]:
    """Describe damage in SQLite's words; a thorough check also compares indexes with their tables, and takes longer."""
    # Python handles a signal only while it runs, so it gets a chance now and then.
    connection.set_progress_handler(lambda: 0, _STEPS_BETWEEN_SIGNALS)
    try:
        kind = "integrity_check" if thorough else "quick_check"
        found = [str(row[0]) for row in connection.execute(f"PRAGMA {kind}({_MAX_PROBLEMS})")]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from error
        raise
    finally:
        connection.set_progress_handler(None, 0)
    return [] if found == ["ok"] else found
