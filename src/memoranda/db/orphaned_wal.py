"""A database that is missing or empty beside a log: damage, which SQLite would take for a new file.

SQLite deletes a log that lies beside an empty file as soon as the file is read, and what was written last is in the
log alone. A new store cannot look like that: its first page is on the disk before it gets a log.
"""

import os
from pathlib import Path

from memoranda.errors import CorruptStoreError, ReplacedStoreError

WAL_SUFFIX = "-wal"


def main_file_missing(path: Path) -> bool:
    """Whether the file is missing or empty while its log is not."""
    # The log is looked at first: whoever makes the store at this moment writes the file before the log.
    return not _size(path) and bool(_size(wal_path(path))) and not _size(path)


def database_exists(path: Path) -> bool:
    """Whether there is a database, or what is left of one."""
    return path.exists() or main_file_missing(path)


def refuse_missing_main_file(path: Path) -> None:
    """Raise before SQLite can touch the log."""
    if main_file_missing(path):
        raise CorruptStoreError(
            f"{path} is {'empty' if path.exists() else 'missing'}, but its log {wal_path(path).name} holds what was "
            "written last, and is left as it is. 'memoranda doctor --fix' keeps the log and saves what is in it; to "
            "begin anew or to restore a backup, move the log away first."
        )


def replaced_error(path: str) -> ReplacedStoreError:
    """For a file that has no name any more: what is written to it is lost with the process."""
    return ReplacedStoreError(
        f"{path} was deleted or replaced while it was open, and nothing was written. What lies there now is opened "
        "with the next call."
    )


def file_identity(path: Path | str) -> tuple[int, int] | None:
    """Which file lies there now; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def wal_path(path: Path) -> Path:
    """SQLite keeps the log beside the file itself, not beside a link to it."""
    return Path(f"{os.path.realpath(path)}{WAL_SUFFIX}")


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError:
        # SQLite will say why it cannot be looked at; it is not known to be empty.
        return 1
