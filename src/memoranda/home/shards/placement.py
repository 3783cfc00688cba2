"""Which of the 64 shards a user belongs to, and row ids that are unique over all stores, so that users keep them.

The shard is a hash that Python and the server compute alike, and that never changes.

The ids of store 3 are 1027, 2051, 3075 …: no other store has them. A conversation has its messages in the order of
their ids, so a store that gets a user continues above the ids of that user. Every number up to 2^53 is exact in JSON,
which is room for 8 million million rows.
"""

from hashlib import md5
from typing import NamedTuple

from memoranda.storage.connection import Connection
from memoranda.storage.postgres.connection import escape
from memoranda.storage.postgres.engine import PostgresEngine

SHARDS = 64
MAX_STORES = 1024


def shard_of(user: str | None) -> int:
    """The shard of a user; None is the owner of the home."""
    digest = md5(escape(user or "").encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) % SHARDS


def shard_expression(user: str) -> str:
    """The same in SQL, for an expression of the user."""
    return f"(('x' || substr(md5({user}), 1, 8))::bit(32)::bigint % {SHARDS})"


class IdSequence(NamedTuple):
    """A column whose values the server assigns, and the sequence that they come from."""

    table: str
    column: str
    sequence: str


def id_sequences(connection: Connection) -> list[IdSequence]:
    """The columns of all tables of a store whose values the server assigns."""
    rows = connection.execute(
        "SELECT table_name::text, column_name::text, pg_get_serial_sequence(quote_ident(table_name), column_name)"
        " FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES'"
    ).fetchall()
    return [IdSequence(*row) for row in rows]


def last_ids(engine: PostgresEngine) -> dict[tuple[str, str], int]:
    """The last id that a store assigned, by table and column."""
    with engine.reading() as connection:
        return {(each.table, each.column): _last(connection, each.sequence) for each in id_sequences(connection)}


def are_separate(engine: PostgresEngine) -> bool:
    """Whether a store assigns only ids of its own."""
    with engine.reading() as connection:
        return all(_increment(connection, each.sequence) == MAX_STORES for each in id_sequences(connection))


def separate_ids(engine: PostgresEngine, number: int, minimum: dict[tuple[str, str], int]) -> None:
    """Let a store assign only ids of its own, all greater than `minimum`; repeated calls change nothing."""
    with engine.reading() as connection:
        due = [
            each
            for each in id_sequences(connection)
            if _increment(connection, each.sequence) != MAX_STORES
            or _last(connection, each.sequence) < minimum.get((each.table, each.column), 0)
        ]
    for each in due:
        with engine.writing() as connection:
            # It also locks the sequence: nothing gets an id until the next one is set.
            connection.execute(f"ALTER SEQUENCE {each.sequence} INCREMENT BY {MAX_STORES}")
            last = max(_last(connection, each.sequence), minimum.get((each.table, each.column), 0))
            following = (last // MAX_STORES + 1) * MAX_STORES + number
            connection.execute(f"ALTER SEQUENCE {each.sequence} RESTART WITH {following}")


def _last(connection: Connection, sequence: str) -> int:
    return int(connection.execute(f"SELECT last_value FROM {sequence}").fetchone()[0])


def _increment(connection: Connection, sequence: str) -> int:
    row = connection.execute(
        "SELECT seqincrement FROM pg_sequence WHERE seqrelid = ?::regclass", (sequence,)
    ).fetchone()
    return int(row[0])
