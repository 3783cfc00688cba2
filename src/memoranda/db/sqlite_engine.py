"""SQLite as the engine of the record: one file, one writer at a time, ids in the order of commits."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.db.connection import Connection
from memoranda.db.engine import Condition
from memoranda.db.position import Position
from memoranda.db.schema import Schema
from memoranda.db.schema_upgrade import refuse_newer, upgrade_schema
from memoranda.db.sqlite import Database

if TYPE_CHECKING:
    from memoranda.support.named_lock import NamedLock

TURN_LOCK_NAME = ".turns.lock"


class SqliteDialect:
    """The SQL of SQLite. Ids follow the order of commits, so a position is an id."""

    row_refused = sqlite3.IntegrityError

    def add_row(self, connection: Connection, statement: str, values: Sequence[Any]) -> int | None:
        added = connection.execute(statement, values)
        return added.lastrowid if added.rowcount == 1 else None  # type: ignore[attr-defined]

    def add_rows(
        self, connection: Connection, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]], minimum: str
    ) -> list[int]:
        # No other transaction can write now, so the ids are known before the rows are inserted.
        (first,) = connection.execute(f"SELECT {self.next_id(table, minimum)}").fetchone()
        ids = list(range(first, first + len(rows)))
        connection.executemany(
            f"INSERT INTO {table} (id, {', '.join(names)}) VALUES (?{', ?' * len(names)})",
            [(number, *row) for number, row in zip(ids, rows, strict=True)],
        )
        return ids

    def add_row_if_valid(self, connection: Connection, table: str, row: Mapping[str, Any]) -> int:
        filled = {name: value for name, value in row.items() if value is not None}
        return connection.execute(
            f"INSERT OR IGNORE INTO {table} ({', '.join(filled)}) VALUES ({', '.join('?' * len(filled))})",
            tuple(filled.values()),
        ).rowcount

    def defer_references(self, connection: Connection) -> None:
        connection.execute("PRAGMA defer_foreign_keys=1")

    def next_id(self, table: str, minimum: str) -> str:
        # SQLite's own counter for ids that are never reused would write one more page for every row.
        return f"max((SELECT COALESCE(max(id), 0) FROM {table}), COALESCE({minimum}, 0)) + 1"

    def like(self, column: str) -> str:
        return f"{column} LIKE ? ESCAPE '\\'"

    def starts_with(self, column: str, prefix: str) -> Condition:
        return Condition(f"{column} >= ? AND {column} < ?", (prefix, f"{prefix}\U0010ffff"))

    def unindexed(self, column: str) -> str:
        return f"+{column}"

    def one_of(self, column: str, values: Collection[Any]) -> Condition:
        return Condition(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))

    def contains_nul(self, column: str) -> str:
        return f"instr({column}, char(0)) > 0"

    def not_ascii(self, column: str) -> str:
        return f"{column} GLOB '*[^' || char(1) || '-' || char(127) || ']*'"

    def position_columns(self, column: str) -> str:
        return f"0, {column}"

    def after(self, column: str, position: Position) -> Condition:
        return Condition(f"{column} > ?", (position.row,))

    def up_to(self, column: str, position: Position) -> Condition:
        return Condition(f"{column} <= ?", (position.row,))

    def position_order(self, column: str, direction: str = "") -> str:
        return f"{column} {direction}".rstrip()


class SqliteEngine(Database):
    """A SQLite file with the tables of the record."""

    dialect = SqliteDialect()

    @property
    def location(self) -> str:
        return str(self.path)

    def create_tables(self, schema: Schema) -> None:
        upgrade_schema(self, schema)

    def lock_session(self, connection: Connection, session_id: str) -> None:
        """Does nothing: `BEGIN IMMEDIATE` has already locked everything."""

    def lock_titles(self, connection: Connection, user_id: str | None) -> None:
        """Does nothing: `BEGIN IMMEDIATE` has already locked everything."""

    def lock_turn(self, conversation_id: str, timeout: float) -> "NamedLock":
        """Take a lock of the file beside the database: a lock of SQLite's own would keep all writers out."""
        # Loaded with the first turn: a hook opens the database for no turn, and must start fast.
        from memoranda.support.named_lock import NamedLock  # noqa: PLC0415

        lock = NamedLock(self.path.with_name(TURN_LOCK_NAME), f"{self.path.name}:{conversation_id}")
        lock.acquire(timeout)
        return lock


def open_sqlite_engine(path: Path, schema: Schema, application_id: int, *, wait: float = 10.0) -> SqliteEngine:
    """Open a file, or create it, with the tables of `schema`; raises NewerStoreError if a newer version wrote it."""
    engine = SqliteEngine(
        path,
        application_id=application_id,
        inspect=lambda connection: refuse_newer(connection, schema, path),
        wait=wait,
    )
    try:
        engine.create_tables(schema)
    except BaseException:
        engine.close()
        raise
    return engine
