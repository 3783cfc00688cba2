"""Which journal a file can have: SQLite's write-ahead log, or the older one where the file system cannot carry it."""

import logging
import sqlite3
from pathlib import Path

from memoranda.db.error_mapping import retry

_log = logging.getLogger(__name__)

# Paths that were complained about.
_warned: set[Path] = set()


def choose_journal(connection: sqlite3.Connection, path: Path, deadline: float) -> str:
    """Switch the log on if that is possible; the name of the journal that is in use."""

    def ask(question: str) -> str:
        return str(retry(connection, question, deadline).fetchone()[0])

    mode = ask("PRAGMA journal_mode")
    if mode == "wal":
        return mode
    try:
        mode = ask("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
            raise
        mode = ask("PRAGMA journal_mode=DELETE")
    if mode != "wal" and path not in _warned:
        _warned.add(path)
        _log.warning(
            "%s lies on a file system without shared memory (a network drive?), so SQLite's write-ahead log "
            "cannot be used. Everything is still durable, but readers and writers wait for each other.", path,
        )  # fmt: skip
    return mode
