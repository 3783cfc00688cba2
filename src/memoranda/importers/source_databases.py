"""Reads SQLite databases of other programs without changing them, even while those programs write."""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from memoranda.importers.reader_protocol import ImportItem, ReadEvent
from memoranda.importers.source_files import find_files, item_at, leads_out, open_source

_BUSY_TIMEOUT = 5.0
_WRITE_VERSION = 18
_WAL = 2
_ROWS_PER_FETCH = 200
_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def database_at(file: Path, label: str) -> ImportItem | None:
    """Return a database with its write-ahead log as an item; None when there is no database."""
    item = item_at(file, label)
    log = item_at(file.with_name(f"{file.name}-wal"), label)
    if item is None or log is None:
        return item
    return ImportItem(file, item.size + log.size, max(item.modified_at, log.modified_at), label)


def find_databases(path: Path, names: Collection[str], label: str) -> list[ImportItem]:
    """Return a database, or those under a directory that have one of these tables.

    A path that is a file is returned whatever it contains, so that reading it reports what is wrong with it.
    """
    if single := database_at(path, label):
        return [single]
    found = [database_at(item.file, label) for item in find_files(path, lambda file: file.suffix in _SUFFIXES, label)]
    return [item for item in found if item is not None and _has_table(item.file, names)]


def _has_table(file: Path, names: Collection[str]) -> bool:
    try:
        with open_database(file) as connection:
            return not tables(connection).keys().isdisjoint(names)
    except OSError:
        return False


@contextmanager
def open_database(file: Path, invalid_text: str = "backslashreplace") -> Iterator[sqlite3.Connection]:
    """Connect without changing the file or its directory; raises errors of SQLite as OSError.

    `invalid_text` is the error handler of `bytes.decode` for text that is not UTF-8, which must not stop the reading.
    """
    beside = [file.with_name(f"{file.name}{suffix}") for suffix in ("-wal", "-shm")]
    if any(leads_out(path.absolute(), file.absolute().parent) for path in beside):
        raise OSError("its log is a link that leads out of its folder")
    in_use = all(path.exists() for path in beside)
    # This process may have a file in use open: reading its header here would release the locks on it.
    has_log = in_use or _says_it_has_log(file)
    try:
        with (
            _connection_uri(file, in_use=in_use or not has_log) as uri,
            closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT)) as connection,
        ):
            connection.text_factory = lambda raw: raw.decode("utf-8", invalid_text)
            if has_log:
                # Reads one consistent state, however long it takes. Without a log this would block the writer.
                connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise OSError(f"not readable as a database: {error}") from error


def _says_it_has_log(file: Path) -> bool:
    with open_source(file) as stream:
        return stream.read(_WRITE_VERSION + 2)[_WRITE_VERSION:] == bytes((_WAL, _WAL))


@contextmanager
def _connection_uri(file: Path, *, in_use: bool) -> Iterator[str]:
    """Yield a URI with which SQLite creates no file next to the database."""
    log = file.with_name(f"{file.name}-wal")
    if in_use:
        # A program may be writing; locks, or the log and its index, isolate the readers from the writer.
        yield f"{file.absolute().as_uri()}?mode=ro"
        return
    before = _version(file)
    if log.exists() and log.stat().st_size:
        # Left by a crash, or copied without the third file: SQLite must recover it first, and does so in a copy.
        with TemporaryDirectory(prefix="memoranda-") as directory:
            for source in (file, log):
                copyfile(source, Path(directory) / source.name)
            yield f"{(Path(directory) / file.name).as_uri()}?mode=rw"
    else:
        # Closed, and complete without a log.
        yield f"{file.absolute().as_uri()}?mode=ro&immutable=1"
    if _version(file) != before:
        raise OSError("it was changed while it was read")


def _version(file: Path) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


def tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the tables of a database with their columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))} for name in names
    }


def rows(connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query; only a few are in memory at a time."""
    cursor = connection.execute(query, values)
    while found := cursor.fetchmany(_ROWS_PER_FETCH):
        yield from found


def read_database(
    item: ImportItem,
    program: str,
    known_tables: Mapping[str, Collection[str]],
    events: Callable[[sqlite3.Connection], Iterator[ReadEvent]],
) -> Iterator[ReadEvent]:
    """Yield the events of a program's database; raises OSError if it is unreadable or not a database of the program.

    `known_tables` are tables with their columns, of which the program's database has at least one.
    """
    with open_database(item.file) as connection:
        found = tables(connection)
        if not any(found.get(table, set()).issuperset(columns) for table, columns in known_tables.items()):
            raise OSError(f"not a database of {program}")
        yield from events(connection)
