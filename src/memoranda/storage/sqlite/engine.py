"""SQLite as the engine of the record: one file, one writer at a time, ids in the order of commits."""

import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, Engine, FeedTable, Statement, last_position, readable_rows
from memoranda.storage.forks import file_identity
from memoranda.storage.orphaned_wal import refuse_missing_main_file
from memoranda.storage.position import Position
from memoranda.storage.schema import Schema
from memoranda.storage.sqlite.database import Database
from memoranda.storage.sqlite.schema_upgrade import refuse_newer, upgrade_schema, was_opened_by_hermes

if TYPE_CHECKING:
    from memoranda.storage.files.named_lock import NamedLock

TURN_LOCK_NAME = ".turns.lock"


_SHORT_LIST, _FILLED = 8, 32


class SqliteDialect:
    """The SQL of SQLite. Ids follow the order of commits, so a position is an id."""

    row_refused = sqlite3.IntegrityError
    one_statement_appends = False
    batches_reads = False

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

    def read_at_once(self, view: Connection, statements: Sequence[Statement]) -> list[list[Any]]:
        return [list(readable_rows(view, *one)) for one in statements]

    def heads_and_rows(
        self, engine: Engine, feeds: Sequence[FeedTable], statements: Sequence[Statement]
    ) -> tuple[list[Position], list[list[Any]]]:
        with engine.reading() as view:
            return engine.wait_for_feed(feeds, visible=True), self.read_at_once(view, statements)

    def is_shared_with_hermes(self, connection: Connection) -> bool:
        return was_opened_by_hermes(connection)

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
        listed = tuple(values)
        if len(listed) > _SHORT_LIST:
            # Filled up, so that few statements are compiled: a connection keeps the last 256, of up to 50 kB each.
            listed += listed[-1:] * (-len(listed) % _FILLED)
        return Condition(f"{column} IN ({', '.join('?' * len(listed))})", listed)

    def contains_nul(self, column: str) -> str:
        return f"instr({column}, char(0)) > 0"

    def not_ascii(self, column: str) -> str:
        return f"{column} GLOB '*[^' || char(1) || '-' || char(127) || ']*'"

    def rounded_down(self, expression: str) -> str:
        return f"CAST({expression} AS INTEGER)"

    def position_columns(self, column: str) -> str:
        return f"0, {column}"

    def after(self, column: str, position: Position) -> Condition:
        return Condition(f"{column} > ?", (position.row,))

    def visible_after(self, column: str, position: Position) -> Condition:
        return self.after(column, position)

    def up_to(self, column: str, position: Position) -> Condition:
        return Condition(f"{column} <= ?", (position.row,))

    def position_order(self, column: str, direction: str = "") -> str:
        return f"{column} {direction}".rstrip()


class StoreGuard(Protocol):
    """Refuses a file that is not the expected store, before anything is written to it."""

    def refuse_new(self) -> None:
        """Raise if the file is missing or empty although it existed before."""

    def refuse_other_owner(self, connection: sqlite3.Connection) -> None:
        """Raise if the file exists, but its header is not ours any more."""

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise if the file is another store, or an older one."""

    def start(self, connection: sqlite3.Connection) -> None:
        """Called after a store was opened."""

    def update(self, connection: sqlite3.Connection) -> None:
        """Called after checkpoints, and before a store is closed."""


class SqliteEngine(Database):
    """A SQLite file with the tables of the record."""

    dialect = SqliteDialect()

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        inspect: Callable[[sqlite3.Connection], None] = lambda connection: None,
        wait: float = 10.0,
        vfs: str = "",
        durable: bool = True,
        guard: StoreGuard | None = None,
    ) -> None:
        self._guard = guard
        self._tables: dict[str, set[str]] = {}

        def inspect_store(connection: sqlite3.Connection) -> None:
            inspect(connection)
            if guard is not None:
                guard.check(connection)

        super().__init__(
            path, application_id=application_id, inspect=inspect_store, wait=wait, vfs=vfs, durable=durable
        )
        if guard is not None:
            self._checkpoints.after_checkpoint = guard.update

    def _open(self) -> None:
        if self._guard is not None:
            refuse_missing_main_file(self.path)
            self._guard.refuse_new()
        super()._open()

    def _prepare(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        if self._guard is not None:
            try:
                self._guard.refuse_other_owner(connection)
            except BaseException:
                connection.close()
                raise
        return super()._prepare(connection)

    def _borrow(self) -> sqlite3.Connection:
        opened = self._identity
        connection = super()._borrow()
        if self._guard is not None and self._identity != opened:
            # The file was replaced; a read must not answer from another store either.
            try:
                self._guard.refuse_other_owner(connection)
                self._guard.check(connection)
            except BaseException:
                connection.close()
                self._identity = opened
                raise
        return connection

    def close(self) -> None:
        """Close every connection, after the guard has noted how far the store has got."""
        if self._guard is not None and not self.closed and not self.read_only:
            with self._lock:
                if self._writer is not None and file_identity(self.path) == self._identity:
                    self._guard.update(self._writer)
        super().close()

    @property
    def location(self) -> str:
        return str(self.path)

    def create_tables(self, schema: Schema) -> None:
        self._tables |= {table.name: {column.name for column in table.columns} for table in schema.tables}
        self._upgrade(schema)

    def _upgrade(self, schema: Schema) -> None:
        upgrade_schema(self, schema)

    def check(self, *, thorough: bool = False) -> list[str]:
        """Describe damage in SQLite's words, and name missing tables and columns: another program may drop one."""
        if problems := super().check(thorough=thorough):
            return problems
        with self.reading() as connection:
            for table, columns in sorted(self._tables.items()):
                missing = columns - {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
                if missing == columns:
                    problems.append(f"the table {table} is missing")
                else:
                    problems += [f"the table {table} has no column {name}" for name in sorted(missing)]
        return problems

    def write_statement(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self.writing() as connection:
            return connection.execute(statement, values).fetchall()

    def locked_session(self, session_id: str) -> Condition:
        return Condition("?", (session_id,))

    def acting_for(self, user: str | None, *, everyone: bool = False) -> "SqliteEngine":
        """The engine itself: users of one file are separated by the conditions of the store."""
        return self

    def across_users(self, connection: Connection) -> AbstractContextManager[None]:
        return nullcontext()

    def wait_for_feed(self, feeds: Sequence[FeedTable] = (), *, visible: bool = False) -> list[Position]:
        """Waits for nothing: rows become visible in the order of their ids."""
        if not feeds:
            return []
        with self.reading() as connection:
            return [last_position(self.dialect, connection, feed) for feed in feeds]

    def current_time(self) -> float:
        return time.time()

    def watch(self, callback: Callable[[], object]) -> None:
        """None: a search in a file looks for new messages itself, which takes no round trip."""

    def lock_session(self, connection: Connection, session_id: str) -> None:
        """Does nothing: `BEGIN IMMEDIATE` has already locked everything."""

    def lock_titles(self, connection: Connection, user_id: str | None) -> None:
        """Does nothing: `BEGIN IMMEDIATE` has already locked everything."""

    def lock_turn(self, conversation_id: str, timeout: float) -> "NamedLock":
        """Take a lock of the file beside the database: a lock of SQLite's own would keep all writers out."""
        # Loaded with the first turn: a hook opens the database for no turn, and must start fast.
        from memoranda.storage.files.named_lock import NamedLock  # noqa: PLC0415

        lock = NamedLock(self.path.with_name(TURN_LOCK_NAME), f"{self.path.name}:{conversation_id}")
        lock.acquire(timeout)
        return lock


_Engine = TypeVar("_Engine", bound=SqliteEngine)


def with_tables(engine: _Engine, *schemas: Schema) -> _Engine:
    """The engine, after it has created these tables; closed if that fails."""
    try:
        for schema in schemas:
            engine.create_tables(schema)
        if engine._guard is not None and not engine.read_only:
            engine._use_writer(engine._guard.start)
    except BaseException:
        engine.close()
        raise
    return engine


def open_sqlite_engine(
    path: Path,
    schema: Schema,
    application_id: int,
    *,
    wait: float = 10.0,
    durable: bool = True,
    guard: StoreGuard | None = None,
) -> SqliteEngine:
    """Open a file, or create it, with the tables of `schema`; raises NewerStoreError if a newer version wrote it.

    A power cut may take the last commits of a file that is not `durable`, and does not damage it. A `guard` recognises
    the file, and raises if it is not the expected one.
    """
    engine = SqliteEngine(
        path,
        application_id=application_id,
        inspect=lambda connection: refuse_newer(connection, schema, path),
        wait=wait,
        durable=durable,
        guard=guard,
    )
    return with_tables(engine, schema)
