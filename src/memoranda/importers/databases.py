"""SQLite databases of other programs, read without changing what they hold, also while they are being written."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memoranda.importers.finding import item_at, open_source
from memoranda.importers.shape import Item

_PATIENCE = 5.0
_WRITE_VERSION = 18
_WAL = 2
_AT_ONCE = 200


def database_at(file: Path, what: str) -> Item | None:
    """A database with what is still in its write-ahead log; None when there is none."""
    item = item_at(file, what)
    log = item_at(file.with_name(f"{file.name}-wal"), what)
    if item is None or log is None:
        return item
    return Item(file, item.size + log.size, max(item.changed, log.changed), what)


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write; errors of SQLite come as OSError, as of any file that cannot be read."""
    log = item_at(file.with_name(f"{file.name}-wal"), "")
    with open_source(file) as stream:
        head = stream.read(_WRITE_VERSION + 2)
    # Without a log, a database in WAL mode is complete by itself; any other way of opening it would leave files there.
    alone = head[_WRITE_VERSION:] == bytes((_WAL, _WAL)) and (log is None or log.size == 0)
    address = f"{file.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
            # A text that is not UTF-8 is shown with its escapes; it must not end the reading.
            connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
            yield connection
    except sqlite3.Error as error:
        raise OSError(f"not readable as a database: {error}") from error


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
