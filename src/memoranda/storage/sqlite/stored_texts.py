"""The texts in the tables of a SQLite file: rows whose text is damaged, and all texts, whatever the tables are for.

Damage can make text invalid, and Python's SQLite module refuses to return such a row. `readable_rows` returns it.
"""

import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine

ReplaceText = Callable[[str], tuple[str, int]]
"""Returns the text to store, and how many passages of it were replaced."""


class StoredText(NamedTuple):
    """A text in a row. `is_key`: it identifies the row, in its primary key or a unique index."""

    table: str
    row: dict[str, Any]
    column: str
    text: str
    is_key: bool


class _TextTable(NamedTuple):
    name: str
    columns: tuple[str, ...]
    row_key: tuple[str, ...]
    keys: frozenset[str]


def read_texts(connection: sqlite3.Connection) -> Iterator[StoredText]:
    """Every text in every ordinary table; blobs and the tables behind full-text indexes are not read."""
    for table in _tables(connection):
        names = ", ".join(
            f"{_quote(name)} AS {_quote(name)}" for name in dict.fromkeys((*table.row_key, *table.columns))
        )
        cursor = connection.execute(f"SELECT {names} FROM {_quote(table.name)}")
        described = [entry[0] for entry in cursor.description]
        for values in cursor:
            row = dict(zip(described, values, strict=True))
            for column in table.columns:
                if isinstance(row[column], str):
                    yield StoredText(table.name, row, column, row[column], column in table.keys)


def replace_texts(
    connection: sqlite3.Connection, replace: ReplaceText, owned: Callable[[StoredText], bool] = lambda text: True
) -> int:
    """Replace texts in the rows that are `owned`, except keys, within the caller's transaction; returns how many."""
    tables = {table.name: table for table in _tables(connection)}
    changes = []
    for text in read_texts(connection):
        if not text.is_key and owned(text):
            new, count = replace(text.text)
            if count:
                changes.append((text, new))
    for text, new in changes:
        key = tables[text.table].row_key
        condition = " AND ".join(f"{_quote(name)} IS ?" for name in key)
        connection.execute(
            f"UPDATE {_quote(text.table)} SET {_quote(text.column)} = ? WHERE {condition}",
            (new, *(text.row[name] for name in key)),
        )
    return len(changes)


def _tables(connection: sqlite3.Connection) -> list[_TextTable]:
    tables = []
    for _, name, kind, _, without_rowid, *_ in connection.execute("PRAGMA table_list").fetchall():
        if kind != "table" or name.startswith("sqlite_"):
            continue
        described = connection.execute(f"PRAGMA table_info({_quote(name)})").fetchall()
        primary = tuple(row[1] for row in sorted(described, key=lambda row: row[5]) if row[5])
        columns = tuple(row[1] for row in described)
        keys = {*primary, *_unique_columns(connection, name)}
        tables.append(_TextTable(name, columns, primary if without_rowid else ("rowid",), frozenset(keys)))
    return tables


def _unique_columns(connection: sqlite3.Connection, table: str) -> set[str]:
    found: set[str] = set()
    for _, index, unique, *_ in connection.execute(f"PRAGMA index_list({_quote(table)})").fetchall():
        if unique:
            found |= {row[2] for row in connection.execute(f"PRAGMA index_info({_quote(index)})") if row[2]}
    return found


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_NOT_UTF8 = "Could not decode to UTF-8"


def readable_rows(connection: Connection, statement: str, values: Sequence[Any] = ()) -> Generator[Any, None, None]:
    """The rows of a statement that always gives the same rows in the same order.

    Bytes that are not text come as U+FFFD; otherwise one damaged row would make all others unreadable.
    """
    count = 0
    try:
        for row in connection.execute(statement, values):
            yield row
            count += 1
    except sqlite3.OperationalError as error:
        if _NOT_UTF8 not in str(error) or not isinstance(connection, sqlite3.Connection):
            raise
    else:
        return
    factory = connection.text_factory
    connection.text_factory = _decode
    try:
        yield from islice(connection.execute(statement, values), count, None)
    finally:
        connection.text_factory = factory


def add_row_if_valid(connection: Connection, table: str, row: Mapping[str, Any]) -> int:
    """Insert a row of a damaged file unless it violates a constraint of the table; return how many rows were added."""
    filled = {name: value for name, value in row.items() if value is not None}
    if not filled:
        # Nothing of it was left on a damaged page.
        return 0
    return connection.execute(
        f"INSERT OR IGNORE INTO {table} ({', '.join(filled)}) VALUES ({', '.join('?' * len(filled))})",
        tuple(filled.values()),
    ).rowcount


def paged_rows(engine: Engine, statement: str, values: Sequence[Any], size: int) -> Iterator[Any]:
    """The rows of a statement that selects an id first and ends with a condition `id > ?`, in the order of the ids.

    Each page is a view of its own, so that no writer waits for a long read.
    """
    last = 0
    while True:
        with engine.reading() as connection:
            page = list(readable_rows(connection, f"{statement} ORDER BY 1 LIMIT ?", (*values, last, size)))
        yield from page
        if len(page) < size:
            return
        last = page[-1][0]


def _decode(stored: bytes) -> str:
    return stored.decode(errors="replace")
