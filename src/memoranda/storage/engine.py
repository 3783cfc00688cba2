"""The protocol of the database behind the record: everything that the session store needs from an engine.

`memory/record/` names tables and columns; an engine provides connections, transactions, locks and the few expressions
that differ between databases. `tests/contracts/` has the contracts that a store over an engine must pass.

Damage can make text invalid, and Python's SQLite module refuses to return such a row. `readable_rows` returns it.
"""

import sqlite3
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from memoranda.storage.connection import Connection
from memoranda.storage.position import START, Position
from memoranda.storage.schema import Schema

_Answer = TypeVar("_Answer")
_NOT_UTF8 = "Could not decode to UTF-8"


class Condition(NamedTuple):
    """A condition of a statement, and the values for its `?`."""

    text: str
    values: Sequence[Any]


Statement = tuple[str, Sequence[Any]]
"""A statement with `?` as placeholder, and its values."""


class FeedTable(NamedTuple):
    """A table that followers read: its name, its id column, and which of its rows count."""

    name: str
    column: str
    condition: Condition = Condition("1 = 1", ())


class HeldLock(Protocol):
    """A lock that is held until `release`, until this object is dropped, or until the process ends."""

    def release(self) -> None: ...


class Watching(Protocol):
    """A watch for commits of other processes."""

    def announce(self) -> None: ...
    def close(self) -> None: ...


class Dialect(Protocol):
    """The SQL that differs between engines."""

    def __hash__(self) -> int: ...

    @property
    def row_refused(self) -> type[Exception]:
        """The error for a row that violates a constraint of its table, such as a reference to a missing row."""

    @property
    def one_statement_appends(self) -> bool:
        """Whether appending messages in one statement is faster, because every statement is a round trip."""

    @property
    def batches_reads(self) -> bool:
        """Whether one large statement is faster than many small ones, because every statement is a round trip."""

    def add_row(self, connection: Connection, statement: str, values: Sequence[Any]) -> int | None:
        """Execute an INSERT into a table with an id; return the id, or None if the row conflicts with another."""

    def add_rows(
        self, connection: Connection, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]], minimum: str
    ) -> list[int]:
        """Insert rows with these columns, none of which can conflict, in order; return their ids, as `next_id` says."""

    def read_at_once(self, view: Connection, statements: Sequence[Statement]) -> list[list[Any]]:
        """The rows of statements that do not need each other's; on a server in one round trip, if nothing was read."""

    def heads_and_rows(
        self, engine: "Engine", feeds: Sequence[FeedTable], statements: Sequence[Statement]
    ) -> tuple[list[Position], list[list[Any]]]:
        """What `wait_for_feed` returns with `visible`, and the rows of statements; on a server in one round trip."""

    def is_shared_with_hermes(self, connection: Connection) -> bool:
        """Whether Hermes uses the same tables, and reads from the rows of sessions what it needs."""

    def defer_references(self, connection: Connection) -> None:
        """Check references at the end of this transaction, so that rows may come before those they refer to."""

    def next_id(self, table: str, minimum: str) -> str:
        """An expression for the id of a new row: greater than every id of the table, and than `minimum` if not null."""

    def like(self, column: str) -> str:
        """A condition with one `?`: the column matches a LIKE pattern, with `\\` as escape, ignoring ASCII case."""

    def starts_with(self, column: str, prefix: str) -> Condition:
        """The text of the column starts with a prefix, exactly as written; an index on the column is used."""

    def unindexed(self, column: str) -> str:
        """The column for a condition that should not decide which index is used."""

    def one_of(self, column: str, values: Collection[Any]) -> Condition:
        """The column has one of the values; with no values, never."""

    def contains_nul(self, column: str) -> str:
        """A condition: `like` may stop reading the text of the column too early, because it contains a NUL."""

    def not_ascii(self, column: str) -> str:
        """A condition: the text of the column contains a character outside ASCII."""

    def rounded_down(self, expression: str) -> str:
        """The whole number below a positive one."""

    def position_columns(self, column: str) -> str:
        """The two columns of a `Position`; `column` is the id of a feed table."""

    def after(self, column: str, position: Position) -> Condition:
        """The rows after a position. A row must never become visible later than a row with a greater position."""

    def visible_after(self, column: str, position: Position) -> Condition:
        """The rows after a position that can be read now, of which a follower might miss some: for a search."""

    def up_to(self, column: str, position: Position) -> Condition:
        """The rows at or before a position."""

    def position_order(self, column: str, direction: str = "") -> str:
        """The terms of ORDER BY that sort rows by position."""


class Engine(Protocol):
    """An open database. A transaction is durable when its block ends, and rolled back if the block raises."""

    @property
    def dialect(self) -> Dialect: ...
    @property
    def location(self) -> str:
        """Where the database is, for messages."""

    @property
    def read_only(self) -> bool: ...
    @property
    def journal(self) -> str:
        """The journal mode; `wal` if readers and writers do not wait for each other."""

    @property
    def closed(self) -> bool: ...

    def create_tables(self, schema: Schema) -> None:
        """Create the tables of `schema`, or add what is missing in an older store."""

    def writing(self) -> AbstractContextManager[Connection]:
        """One transaction that may read and write."""

    def write(self, work: Callable[[Connection], _Answer]) -> _Answer:
        """Call `work` in a transaction, and return its result when that is durable.

        Threads that write at the same time may share a transaction, so `work` may be called again after a rollback.
        """

    def write_statement(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """Execute one statement as a transaction, in one round trip, and return its rows when it is durable.

        Only for engines whose dialect says `one_statement_appends`. If the connection is lost, the statement is
        executed again: twice must have the effect of once. Raises `row_refused` for a row that violates a constraint.
        """

    def locked_session(self, session_id: str) -> Condition:
        """An expression for the id of a session, for `write_statement`: it locks the session as `lock_session` does."""

    def acting_for(self, user: str | None, *, everyone: bool = False) -> "Engine":
        """The same database for one user (None is the owner), where the engine itself separates users."""

    def across_users(self, connection: Connection) -> AbstractContextManager[None]:
        """In the block, a transaction that acts for one user may change the rows of others, such as links to theirs."""

    def reading(self) -> AbstractContextManager[Connection]:
        """One consistent view. A nested call returns the same view."""

    def wait_for_feed(self, feeds: Sequence[FeedTable] = (), *, visible: bool = False) -> list[Position]:
        """Wait, not for long, until a follower can read everything that was committed before this call.

        Returns the last position that it can read in each of the feeds. With `visible`, what it cannot read counts too,
        since a transaction in progress takes longer: for readers that keep no position.
        """

    def lock_session(self, connection: Connection, session_id: str) -> None:
        """Lock a session against other transactions until this one ends.

        Every operation that reads a session and then writes accordingly takes this lock first.
        """

    def lock_titles(self, connection: Connection, user_id: str | None) -> None:
        """Lock the titles of a user's sessions, which are unique, until the transaction ends."""

    def lock_turn(self, conversation_id: str, timeout: float) -> HeldLock:
        """Outside any transaction: let no other thread or process lock the turn of this conversation meanwhile.

        Raises LockTimeoutError when another holder keeps it for more than `timeout` seconds. A turn lasts as long as
        a model needs to answer, so waiting for it and holding it must occupy no connection that others need.
        """

    def current_time(self) -> float:
        """Seconds since 1970, by one clock for all processes that use the database: leases depend on it."""

    def watch(self, callback: Callable[[], object]) -> Watching | None:
        """Call `callback`, in a thread, when another process may have committed; None if callers must look themselves.

        The result announces commits of this process to the others, until it is closed.
        """

    def shrink_log(self) -> bool:
        """Remove deleted text from the engine's log; False while a reader still needs it."""

    def check(self, *, thorough: bool = False) -> list[str]:
        """Describe damage in the engine's words; empty if there is none. `thorough` finds more and takes longer."""

    def vacuum(self, max_seconds: float | None = None) -> bool:
        """Return the space of deleted rows to the file system; False if that takes longer, and nothing changed."""

    def release_space(self, stopped: Callable[[], bool] = ...) -> int:
        """Return the space of deleted rows in short steps, between which others write, until `stopped`.

        Returns how many bytes are left.
        """

    def close(self) -> None: ...


def last_position(dialect: Dialect, connection: Connection, feed: FeedTable) -> Position:
    """The position of the last row of a feed table that a follower can read."""
    condition, values = dialect.after(feed.column, START)
    row = connection.execute(
        f"SELECT {dialect.position_columns(feed.column)} FROM {feed.name}"
        f" WHERE {condition} AND {feed.condition.text}"
        f" ORDER BY {dialect.position_order(feed.column, 'DESC')} LIMIT 1",
        (*values, *feed.condition.values),
    ).fetchone()
    return START if row is None else Position(*row)


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
