"""All texts in the tables of a SQLite file, whatever the tables are for."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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
