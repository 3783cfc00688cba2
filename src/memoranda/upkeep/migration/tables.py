"""Copies the rows of tables from one engine to another, in short transactions, and compares the two.

`copy_parts_to_server` and `copy_parts_to_files` do so for all parts of a home beside its record and curated memory.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.external.outbox import schema as outbox
from memoranda.external.outbox.schema import read_positions, write_position
from memoranda.importers.state import schema as imports
from memoranda.memory.record.notifications import FeedHeads
from memoranda.memory.record.record import open_record
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.lazy_database import opened_for_everyone
from memoranda.storage.position import Position
from memoranda.storage.schema import Schema, Table
from memoranda.storage.state_meta import read_meta
from memoranda.support.home import Home
from memoranda.upkeep.home_tables import opened_parts, part_database, part_schemas

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
    with target.reading() as connection:
        after, done = connection.execute(f"SELECT max({copied.key}), count(*) FROM {name}").fetchone()
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


def copy_parts_to_server(home: Home, url: str, progress: Progress) -> dict[str, int]:
    """Copy the parts that a home has to a server, and verify them; returns how many rows each table has."""
    counts: dict[str, int] = {}
    for file, schema in opened_parts(home.root):
        if not _has_rows(file, schema) or (schema is imports.SCHEMA and _are_of_another_store(file, url)):
            continue
        with opened_for_everyone(part_database(home.root, schema, url)) as server:
            counts |= _copy(schema.tables, file, server, progress)
            continue_numbers(server, _copied(schema.tables))
            if schema is outbox.SCHEMA:
                counts[outbox.POSITIONS.name] = _positions_to_server(url, file, server)
    return counts


def copy_parts_to_files(url: str, home: Home, progress: Progress) -> dict[str, int]:
    """Copy the parts that a server has into a home, and verify them; returns how many rows each table has."""
    counts: dict[str, int] = {}
    for schema in part_schemas():
        with opened_for_everyone(part_database(home.root, schema, url)) as server:
            if not _has_rows(server, schema):
                continue
            with opened_for_everyone(part_database(home.root, schema)) as file:
                if schema is imports.SCHEMA:
                    with server.reading() as there, file.writing() as here:
                        imports.assign_to_store(here, read_meta(there, "store_id") or "")
                counts |= _copy(schema.tables, server, file, progress)
                if schema is outbox.SCHEMA:
                    counts[outbox.POSITIONS.name] = _positions_to_files(url, server, file)
    return counts


def _has_rows(engine: Engine, schema: Schema) -> bool:
    return any(count_rows(engine, table.name) for table in schema.tables)


def _copy(tables: Sequence[Table], source: Engine, target: Engine, progress: Progress) -> dict[str, int]:
    counts = {}
    for copied in _copied(tables):
        counts[copied.table.name] = copy_table(source, target, copied, progress)
        compare_table(source, target, copied, progress)
    return counts


def _copied(tables: Sequence[Table]) -> list[CopiedTable]:
    # Positions name rows of the store that they are in.
    return [CopiedTable(table, table.columns[0].name) for table in tables if table is not outbox.POSITIONS]


def _are_of_another_store(file: Engine, url: str) -> bool:
    """Whether the imports of a home went into a store that was deleted since."""
    with closing(open_record(url)) as record, file.reading() as here, record.reading() as there:
        return imports.store_of_imports(here) not in (None, read_meta(there, "store_id"))


def _positions_to_server(url: str, file: Engine, server: Engine) -> int:
    """Positions of a server name a transaction: that in which the last message was copied that had been read."""
    with file.reading() as connection:
        positions = read_positions(connection)
    with closing(open_record(url)) as record, record.reading() as messages:
        columns = record.dialect.position_columns("id")
        for provider, scope, position in positions:
            row = messages.execute(
                f"SELECT {columns} FROM messages WHERE id <= ? ORDER BY id DESC LIMIT 1", (position.row,)
            ).fetchone()
            with server.writing() as connection:
                write_position(connection, provider, scope, FeedHeads(Position(*row) if row else Position()))
    return len(positions)


def _positions_to_files(url: str, server: Engine, file: Engine) -> int:
    """Files are read in the order of ids: a turn that was read out of that order is delivered again."""
    with server.reading() as connection:
        positions = read_positions(connection)
    with closing(open_record(url)) as record, record.reading() as messages:
        for provider, scope, position in positions:
            condition, values = record.dialect.visible_after("id", position)
            first, last = messages.execute(
                f"SELECT (SELECT min(id) FROM messages WHERE {condition}), (SELECT max(id) FROM messages)", values
            ).fetchone()
            with file.writing() as connection:
                reached = FeedHeads(Position(0, first - 1 if first else last or 0))
                write_position(connection, provider, scope, reached)
    return len(positions)
