"""The files of an index, one per generation: each has a new name, and the newest one is used.

The files of `index.db` are named `index.db.<number>`. SQLite finds a database's log by name, and removes it by name
when the last connection closes. If a new file had the name of an old one that another process still has open, that
process would mix the two. So a damaged or replaced file is deleted, and the next generation has a higher number.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from memoranda.search.index.tables import PAGE_SIZE
from memoranda.storage.fork_safety import refuse_inherited
from memoranda.storage.sqlite.write_ahead_log import supports_log
from memoranda.support.durable_files import PRIVATE_FILE, sync

_COMPANIONS = ("", "-wal", "-shm", "-journal")
_ABANDONED_AFTER = 3600.0


def generations(path: Path) -> list[Path]:
    """The existing files, newest first."""
    pattern = re.compile(rf"{re.escape(path.name)}\.(\d{{1,19}})")
    try:
        names = os.listdir(path.parent)
    except FileNotFoundError:
        return []
    numbered = [(int(match[1]), path.with_name(name)) for name in names if (match := pattern.fullmatch(name))]
    return [file for _, file in sorted(numbered, reverse=True) if not file.is_dir()]


def next_generation(path: Path) -> Path:
    """A name with a higher number than every existing file."""
    number = time.time_ns()
    for file in generations(path)[:1]:
        number = max(number, int(file.suffix[1:]) + 1)
    return path.with_name(f"{path.name}.{number}")


@contextmanager
def create_generation(file: Path) -> Iterator[sqlite3.Connection]:
    """Build a generation under a hidden name; it gets its own name when the block ends, and is deleted if it raises."""
    hidden = file.with_name(f"{file.name}.building")
    # Only its owner may read it; SQLite gives its other files the same mode.
    os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
    try:
        with closing(connect(hidden, 0.0)) as connection:
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            # After a crash it is rebuilt, so it needs no journal.
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            yield connection
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA journal_mode={'WAL' if supports_log(file) else 'DELETE'}")
        # Without a journal, part of the file could be missing after a power cut.
        with hidden.open("rb+") as whole:
            sync(whole.fileno())
        os.rename(hidden, file)
    except BaseException:
        remove(hidden)
        raise


def remove(file: Path) -> None:
    """Delete a file and SQLite's other files for it."""
    for companion in _COMPANIONS:
        with suppress(FileNotFoundError):
            os.unlink(f"{file}{companion}")


def remove_older(path: Path, newest: Path) -> None:
    """Delete older generations, and files of abandoned builds."""
    files = generations(path)
    if newest in files:
        for file in files[files.index(newest) + 1 :]:
            remove(file)
    for file in path.parent.glob(f"{path.name}.*.building"):
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _ABANDONED_AFTER:
                remove(file)
    left_behind = re.compile(rf"({re.escape(path.name)}\.\d{{1,19}})-(?:wal|shm|journal)")
    for name in os.listdir(path.parent):
        # A process that had a deleted file open may leave these, and they contain words of messages.
        if (match := left_behind.fullmatch(name)) and not path.with_name(match[1]).exists():
            path.with_name(name).unlink(missing_ok=True)


def connect(file: Path, wait: float, mode: str = "rw") -> sqlite3.Connection:
    """Open an existing file."""
    refuse_inherited(file)
    return sqlite3.connect(
        f"file:{quote(str(file))}?mode={mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )
