"""The SQL of PostgreSQL, and how far followers can read.

Ids come from a sequence when a row is inserted, so they do not follow the order of commits. A position is therefore the
number of the transaction and the id: a transaction below the horizon, the oldest one in progress, has ended, so no row
can appear before a position that a follower has read.

A transaction in progress thus holds back all later ones. Transactions of the store take milliseconds, so that waiting
for those in progress gives every search what was committed before it. A transaction that takes longer, perhaps of
another program on the same server, is waited for once; then a search reads what is committed above the horizon from
the record, and followers continue when that transaction has ended.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from psycopg import errors as pg

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, Engine, FeedTable, Statement
from memoranda.storage.position import START, Position
from memoranda.storage.postgres import row_security

TRANSACTION = "xid"
"""The column of a feed table with the number of the transaction that inserted the row."""


class PostgresDialect:
    """Statements and conditions for PostgreSQL 15 and later."""

    row_refused = pg.IntegrityError
    one_statement_appends = True
    batches_reads = True

    def add_row(self, connection: Connection, statement: str, values: Sequence[Any]) -> int | None:
        row = connection.execute(f"{statement} RETURNING id", values).fetchone()
        return None if row is None else row[0]

    def add_rows(
        self, connection: Connection, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]], minimum: str
    ) -> list[int]:
        one = f"({self.next_id(table, minimum)}{', ?' * len(names)})"
        added = connection.execute(
            f"INSERT INTO {table} (id, {', '.join(names)}) VALUES {', '.join([one] * len(rows))} RETURNING id",
            [value for row in rows for value in row],
        )
        return [number for (number,) in added]

    def read_at_once(self, view: Connection, statements: Sequence[Statement]) -> list[list[Any]]:
        return view.read_at_once(statements)  # type: ignore[attr-defined, no-any-return]

    def heads_and_rows(
        self, engine: Engine, feeds: Sequence[FeedTable], statements: Sequence[Statement]
    ) -> tuple[list[Position], list[list[Any]]]:
        return engine.heads_and_rows(feeds, statements)  # type: ignore[attr-defined, no-any-return]

    def is_shared_with_hermes(self, connection: Connection) -> bool:
        return False

    def defer_references(self, connection: Connection) -> None:
        connection.execute("SET CONSTRAINTS ALL DEFERRED")

    def next_id(self, table: str, minimum: str) -> str:
        # A sequence never returns a number twice, so `minimum`, the ids of deleted rows, needs no attention.
        return f"nextval('{table}_id_seq')"

    def like(self, column: str) -> str:
        # With the collation C, ILIKE ignores the case of ASCII letters only.
        return f"{column} ILIKE ? ESCAPE '\\'"

    def starts_with(self, column: str, prefix: str) -> Condition:
        escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return Condition(f"{column} LIKE ? ESCAPE '\\'", (f"{escaped}%",))

    def unindexed(self, column: str) -> str:
        return column

    def one_of(self, column: str, values: Collection[Any]) -> Condition:
        return Condition(f"{column} = ANY(?)", ([*values],)) if values else Condition("1 = 0", ())

    def contains_nul(self, column: str) -> str:
        # A NUL is stored escaped, so LIKE reads the whole text; the escape itself may hide a match next to it.
        return f"position(chr(26) in {column}) > 0"

    def not_ascii(self, column: str) -> str:
        return f"octet_length({column}) > char_length({column})"

    def rounded_down(self, expression: str) -> str:
        return f"floor({expression})::bigint"

    def position_columns(self, column: str) -> str:
        return f"{_transaction_of(column)}::text::bigint, {column}"

    def after(self, column: str, position: Position) -> Condition:
        condition, values = self.visible_after(column, position)
        return Condition(f"{condition} AND {_transaction_of(column)} < pg_snapshot_xmin(pg_current_snapshot())", values)

    def visible_after(self, column: str, position: Position) -> Condition:
        return Condition(
            f"({_transaction_of(column)}, {column}) > (?::text::xid8, ?::bigint)",
            (str(position.transaction), position.row),
        )

    def up_to(self, column: str, position: Position) -> Condition:
        return Condition(
            f"({_transaction_of(column)}, {column}) <= (?::text::xid8, ?::bigint)",
            (str(position.transaction), position.row),
        )

    def position_order(self, column: str, direction: str = "") -> str:
        return f"{_transaction_of(column)} {direction}, {column} {direction}"


def _transaction_of(column: str) -> str:
    table, dot, _ = column.rpartition(".")
    return f"{table}{dot}{TRANSACTION}"


MAX_WAIT = 0.5
_FIRST_PAUSE, _MAX_PAUSE = 0.001, 0.02
_HORIZON = "pg_snapshot_xmin(pg_current_snapshot())"
# The setting that row-level security asks for, before any row is read: rows are looked up by the result.
_BELOW_HORIZON = f"(SELECT CASE WHEN {row_security.SET_EVERYONE} <> '' THEN {_HORIZON} END)"
_VISIBLE = f"(SELECT CASE WHEN {row_security.SET_EVERYONE} <> '' THEN '{2**63 - 1}'::xid8 END)"
_NEWEST = (
    f"(SELECT {TRANSACTION} FROM {{0}} WHERE {TRANSACTION} >= {_BELOW_HORIZON} ORDER BY {TRANSACTION} DESC LIMIT 1)"
)

_LAST = (
    f"(SELECT ARRAY[{TRANSACTION}::text::bigint, {{1}}] FROM {{0}} WHERE {TRANSACTION} < {{3}}"
    f" AND {{2}} ORDER BY {TRANSACTION} DESC, {{1}} DESC LIMIT 1)"
)

Ask = Callable[[str, list[Any]], Any]


def _last(feeds: Sequence[FeedTable], limit: str) -> str:
    return ", ".join(_LAST.format(feed.name, feed.column, feed.condition.text, limit) for feed in feeds)


class Horizon:
    """The feed tables of one engine, and the oldest transaction in progress that took too long last time."""

    def __init__(self, feeds: Iterable[str]) -> None:
        newest = ", ".join(_NEWEST.format(table) for table in feeds)
        self._ask_newest = f"SELECT GREATEST({newest})::text, {_HORIZON}::text"
        self._slow = ""

    def wait(self, ask: Ask) -> bool:
        """Wait until everything committed before the call is below the horizon; False if that takes too long.

        `ask` executes one statement outside a transaction and returns its first row.
        """
        newest, oldest = ask(self._ask_newest, [])
        return newest is None or self._wait(newest, oldest, ask)

    def heads(self, feeds: Sequence[FeedTable], ask: Ask, *, visible: bool = False) -> list[Position]:
        """The last positions below the horizon, after waiting; mostly nothing is in progress, and one trip is enough.

        If waiting takes too long, `visible` gives the last positions of all that is committed. They concern the rows of
        all users, unless the condition of a feed says otherwise.
        """
        if not feeds:
            self.wait(ask)
            return []
        values = [value for feed in feeds for value in feed.condition.values]
        newest, oldest, *found = ask(f"{self._ask_newest}, {_last(feeds, _BELOW_HORIZON)}", values)
        if newest is not None:
            passed = self._wait(newest, oldest, ask)
            found = ask(f"SELECT {_last(feeds, _VISIBLE if visible and not passed else _BELOW_HORIZON)}", values)
        return [START if position is None else Position(*position) for position in found]

    def _wait(self, newest: str, oldest: str, ask: Ask) -> bool:
        if oldest == self._slow:
            return False
        deadline, pause = time.monotonic() + MAX_WAIT, _FIRST_PAUSE
        while True:
            time.sleep(pause)
            passed, oldest = ask(f"SELECT {_HORIZON} > ?::text::xid8, {_HORIZON}::text", [newest])
            if passed:
                return True
            if time.monotonic() >= deadline:
                self._slow = oldest
                return False
            pause = min(pause * 2, _MAX_PAUSE)
