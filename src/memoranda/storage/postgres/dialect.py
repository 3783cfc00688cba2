"""The SQL of PostgreSQL.

Ids come from a sequence when a row is inserted, so they do not follow the order of commits. A position is therefore the
number of the transaction and the id: a transaction below the horizon, the oldest one in progress, has ended, so no row
can appear before a position that a follower has read.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from psycopg import errors as pg

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition
from memoranda.storage.position import Position
from memoranda.storage.postgres.connection import PostgresConnection

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

    def add_row_if_valid(self, connection: Connection, table: str, row: Mapping[str, Any]) -> int:
        filled = {name: value for name, value in row.items() if value is not None}
        if not filled:
            return 0
        try:
            # A savepoint: an error would otherwise end the whole transaction.
            with cast(PostgresConnection, connection).raw.transaction():
                return connection.execute(
                    f"INSERT INTO {table} ({', '.join(filled)}) VALUES ({', '.join('?' * len(filled))})"
                    " ON CONFLICT DO NOTHING",
                    tuple(filled.values()),
                ).rowcount
        except (pg.IntegrityError, pg.DataError, pg.DatatypeMismatch):
            return 0

    def is_shared_with_hermes(self, connection: Connection) -> bool:
        return False

    def defer_references(self, connection: Connection) -> None:
        connection.execute("SET CONSTRAINTS ALL DEFERRED")

    def moved_row(self, table: str) -> str:
        # Every update writes a new row.
        return ""

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
