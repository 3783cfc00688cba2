"""Detects a database file that is missing or empty although its write-ahead log exists, before SQLite deletes the log.

SQLite treats the file as a new one and deletes the log as soon as the file is read, although only the log contains the
latest writes. A new store never looks like that: its first page is on the disk before it gets a log.
"""

import os
from pathlib import Path

from memoranda.errors import CorruptStoreError, ReplacedStoreError
from memoranda.support.home import had_store

WAL_SUFFIX = "-wal"


def main_file_missing(path: Path) -> bool:
    """Whether the file is missing or empty while its log is not."""
    # The log comes first: a process that is creating the store writes the file before the log.
    return not file_size(path) and bool(file_size(wal_path(path))) and not file_size(path)


def database_exists(path: Path) -> bool:
    """Whether there is a database, or at least its log."""
    return path.exists() or main_file_missing(path)


def record_exists(location: Path | str) -> bool:
    """Whether a home has a session store, or had one that is lost, which must not look like a new home.

    A server always has one.
    """
    return isinstance(location, str) or database_exists(location) or had_store(location)


def refuse_missing_main_file(path: Path) -> None:
    """Raise CorruptStoreError before SQLite can delete the log."""
    if main_file_missing(path):
        raise CorruptStoreError(
            f"{path} is {'empty' if path.exists() else 'missing'}, but its log {wal_path(path).name} holds the "
            "latest writes, and stays unchanged. 'memoranda doctor --fix' keeps the log and saves its content; to "
            "start with an empty store or to restore a backup, move the log away first."
        )


def replaced_error(path: str) -> ReplacedStoreError:
    """The error for a file that was deleted or replaced while it was open: a write to it would be lost."""
    return ReplacedStoreError(
        f"{path} was deleted or replaced while it was open, and nothing was written. The next call opens the new file."
    )


def wal_path(path: Path) -> Path:
    """The path of the log, which SQLite keeps next to the file itself, not next to a link to it."""
    return Path(f"{os.path.realpath(path)}{WAL_SUFFIX}")


def file_size(path: Path) -> int:
    """The size of a file; 0 if it does not exist."""
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError:
        # SQLite will report why the file cannot be read; it may not be empty.
        return 1
