"""Copies a database that other processes use: the copy is the database at one point in time."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from memoranda.errors import BackupError
from memoranda.storage.sqlite.database import find_damage

_PAGES_PER_STEP = 2_000
_BUSY_SECONDS = 30.0


def copy_database(source: Path, target: Path, advance: Callable[[int], None] = lambda _: None) -> None:
    """Copy a database to a new file and check the copy; `advance` gets the bytes of each step.

    Writers of a database with a write-ahead log do not wait. Raises BackupError when it cannot be read, or is damaged.
    """
    try:
        with (
            closing(sqlite3.connect(source, timeout=_BUSY_SECONDS, isolation_level=None)) as reading,
            closing(sqlite3.connect(target, isolation_level=None)) as writing,
        ):
            # One read transaction for all steps: without it SQLite starts again whenever another process writes.
            reading.execute("BEGIN")
            (page_size,) = reading.execute("PRAGMA page_size").fetchone()
            reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
            writing.execute("PRAGMA synchronous=OFF")
            left = 0

            def report(_status: int, remaining: int, total: int) -> None:
                nonlocal left
                advance(((left or total) - remaining) * page_size)
                left = remaining

            reading.backup(writing, pages=_PAGES_PER_STEP, progress=report)
            problems = find_damage(writing, thorough=False)
    except sqlite3.Error as error:
        raise BackupError(f"{source} cannot be copied: {error}.") from error
    if problems:
        raise BackupError(
            f"{source} is damaged ({problems[0]}). 'memoranda doctor --fix' saves what is in it and keeps the damaged "
            "file; back up after that."
        )
