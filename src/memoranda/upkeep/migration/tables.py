"""Copies the rows of tables from one engine to another, in short transactions, and compares the two.

A copy that was killed is continued: rows are copied in the order of their key, so the greatest key in the target says
how far it got. Sessions refer to each other, so they are copied in one transaction.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.schema import Table

_BATCH = 500
Progress = Callable[[str, int, int], None]
"""Called with what is copied, how many rows are done, and how many there are."""


class CopiedTable(NamedTuple):
    """A table, the column by which its rows are ordered, and whether all rows are copied in one transaction."""

    table: Table
    key: str
    at_once: bool = False

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.table.columns]


def copy_table(source: Engine, target: Engine, copied: CopiedTable, progress: Progress) -> int:
    """Copy the rows that the target lacks; returns how many rows the source has."""
    name = copied.table.name
    total = count_rows(source, name)
    after = _greatest(target, copied)
    done = count_rows(target, name)
    for rows in _batches(source, copied, after):
        with target.writing() as connection:
            target.dialect.defer_references(connection)
            _insert(connection, copied, rows)
        done += len(rows)
        progress(name, done, total)
    return total


def count_rows(engine: Engine, name: str) -> int:
    with engine.reading() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0])


def compare_table(source: Engine, target: Engine, copied: CopiedTable, progress: Progress) -> None:
    """Raise StorageError unless both tables have the same rows, value by value."""
    name = copied.table.name
    progress(f"verifying {name}", 0, 1)
    if _digest(source, copied) != _digest(target, copied):
        raise StorageError(
            f"The table {name} differs in {target.location}. Was {source.location} changed during the copy? "
            "Stop every program that uses it, empty the target, and start again."
        )


def _digest(engine: Engine, copied: CopiedTable) -> str:
    digest = hashlib.sha256()
    for rows in _batches(engine, copied, None, at_once=False):
        for row in rows:
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _batches(
    engine: Engine, copied: CopiedTable, after: Any, *, at_once: bool | None = None
) -> Iterator[Sequence[Sequence[Any]]]:
    """The rows after a key, in its order."""
    columns, whole = copied.columns, copied.at_once if at_once is None else at_once
    place = columns.index(copied.key)
    limit = "" if whole else f" LIMIT {_BATCH}"
    while True:
        condition, values = ("", ()) if after is None else (f" WHERE {copied.key} > ?", (after,))
        with engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(columns)} FROM {copied.table.name}{condition} ORDER BY {copied.key}{limit}", values
            ).fetchall()
        if rows:
            yield rows
        if whole or len(rows) < _BATCH:
            return
        after = rows[-1][place]


def _greatest(engine: Engine, copied: CopiedTable) -> Any:
    with engine.reading() as connection:
        return connection.execute(f"SELECT max({copied.key}) FROM {copied.table.name}").fetchone()[0]


def _insert(connection: Connection, copied: CopiedTable, rows: Sequence[Sequence[Any]]) -> None:
    columns = copied.columns
    connection.executemany(
        f"INSERT INTO {copied.table.name} ({', '.join(columns)}) VALUES (?{', ?' * (len(columns) - 1)})", rows
    )


def continue_numbers(target: Engine, tables: Sequence[CopiedTable]) -> None:
    """Let new rows on a server get numbers after the copied ones."""
    with target.writing() as connection:
        for copied in tables:
            if any(column.name == copied.key and column.kind != "text" for column in copied.table.columns):
                table = copied.table.name
                connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{copied.key}'), "
                    f"GREATEST(COALESCE(max({copied.key}), 0), 0) + 1, false) FROM {table}"
                ).fetchone()
