"""SQLite databases of other programs, read without changing what they hold, also while they are being written."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from memoranda.importers.reader_protocol import ImportItem
from memoranda.importers.source_files import item_at, open_source

_PATIENCE = 5.0
_WRITE_VERSION = 18
_WAL = 2
_AT_ONCE = 200


def database_at(file: Path, what: str) -> ImportItem | None:
    """A database with what is still in its write-ahead log; None when there is none."""
    item = item_at(file, what)
    log = item_at(file.with_name(f"{file.name}-wal"), what)
    if item is None or log is None:
        return item
    return ImportItem(file, item.size + log.size, max(item.changed, log.changed), what)


@contextmanager
def opened(file: Path, odd_text: str = "backslashreplace") -> Iterator[sqlite3.Connection]:
    """A connection that leaves the file and its folder as they are; errors of SQLite come as OSError.

    `odd_text` says how text that is not UTF-8 is shown, as in `bytes.decode`; it must not end the reading.
    """
    with open_source(file) as stream:
        has_log = stream.read(_WRITE_VERSION + 2)[_WRITE_VERSION:] == bytes((_WAL, _WAL))
    try:
        with (
            _address(file, has_log=has_log) as address,
            closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection,
        ):
            connection.text_factory = lambda raw: raw.decode("utf-8", odd_text)
            if has_log:
                # One state of it, however long the reading takes. Without a log this would hold up the writer.
                connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise OSError(f"not readable as a database: {error}") from error


@contextmanager
def _address(file: Path, *, has_log: bool) -> Iterator[str]:
    """Where to open a database, and how, so that SQLite makes no file beside it."""
    log = file.with_name(f"{file.name}-wal")
    shared = file.with_name(f"{file.name}-shm")
    if not has_log or (log.exists() and shared.exists()):
        # Somebody may be writing; locks, or these two files, keep the readers apart from the writer.
        yield f"{file.absolute().as_uri()}?mode=ro"
        return
    before = _version(file)
    if log.exists() and log.stat().st_size:
        # Left by a crash, or copied without the third file: SQLite has to mend it first, and does so in a copy.
        with TemporaryDirectory(prefix="memoranda-") as place:
            for each in (file, log):
                copyfile(each, Path(place) / each.name)
            yield f"{(Path(place) / file.name).as_uri()}?mode=rw"
    else:
        # Closed, and complete by itself.
        yield f"{file.absolute().as_uri()}?mode=ro&immutable=1"
    if _version(file) != before:
        raise OSError("it was changed while it was read")


def _version(file: Path) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


def tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """The tables of a database and their columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))} for name in names
    }


def rows(connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, a few at a time."""
    cursor = connection.execute(query, values)
    while found := cursor.fetchmany(_AT_ONCE):
        yield from found
