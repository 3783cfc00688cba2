"""Moves a shard from one store to another while its users work: each user waits for a moment, and nothing is lost.

A user is moved in two transactions. The target gets a copy of all rows and commits; then the source notes that the user
has moved, which makes its own rows an old copy that nothing may write. Until that note is committed the source is the
truth, so a move that is killed at any point is simply repeated. The old copies are deleted when every node knows.

Some rows name a position in the feed of messages, and a position names a transaction of its store. In the target, all
copied messages belong to the transaction of the move, in the order of their ids. What the source had not read yet must
come after the new position; a message that it had read out of the order of ids is read again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memoranda.errors import StorageError
from memoranda.home.shards.directory import MAP_SECONDS, Directory, Placement
from memoranda.home.shards.fences import SET_MOVING, lock_shard, lock_user, user_column, user_tables
from memoranda.home.shards.placement import id_sequences, separate_ids, shard_expression
from memoranda.storage.position import Position, former_stores_key
from memoranda.storage.postgres import row_security
from memoranda.storage.postgres.connection import PostgresConnection, RawConnection
from memoranda.storage.postgres.dialect import PostgresDialect
from memoranda.storage.postgres.engine import PostgresEngine
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.lazy_dataclass import dataclass

_TABLE = "outbox_positions"
_STORE_ID = "store_id"


def keep_turn_marks(source: PostgresConnection, target: PostgresConnection, user: str) -> None:
    """Note in the target which stores the user came from.

    A completed turn names the store in which it was recorded. Without the note, the target would take a turn that was
    not queued before the move for an imported one, and never deliver it.
    """
    key = former_stores_key(user)
    former = {read_meta(source, _STORE_ID) or "", *(read_meta(source, key) or "").split()}
    former -= {"", read_meta(target, _STORE_ID)}
    write_meta(target, key, " ".join(sorted(former)))


def translate_positions(source: PostgresConnection, target: PostgresConnection, tables: list[str]) -> None:
    """Change the copied positions of one user, as whom both transactions act."""
    if _TABLE not in tables:
        return
    ((transaction,),) = target.execute("SELECT pg_current_xact_id()::text").fetchall()
    for number, text in source.execute(f"SELECT id, position FROM {_TABLE}").fetchall():
        condition, values = PostgresDialect().visible_after("id", Position.parse(text))
        first, last = source.execute(
            f"SELECT (SELECT min(id) FROM messages WHERE {condition}), (SELECT max(id) FROM messages)", values
        ).fetchone()
        position = Position(int(transaction), first - 1 if first else last or 0)
        # Notifications that were read already are recognised by their keys.
        target.execute(f"UPDATE {_TABLE} SET position = ?, notified = '0' WHERE id = ?", (str(position), number))


# So that every node has read the map again, also one whose clock or network is slow. A shard without users waits for
# less: a node that is later reads nothing of a user who was created meanwhile, and a store refuses what it writes.
_SETTLE_SECONDS = 3 * MAP_SECONDS
_EMPTY_SHARE = 1 / 3
_MAX_LEFT = 20
# The source waits inside its transaction until the target has committed.
_NO_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0"


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """How many users have moved, and how many rows."""

    users: int = 0
    rows: int = 0


class ShardMove:
    """Moves one shard; `run` can be repeated after it was interrupted, and continues."""

    def __init__(
        self,
        directory: Directory,
        shard: int,
        target: int,
        *,
        report: Callable[[MoveProgress], None] = lambda _: None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._directory = directory
        self._shard = shard
        self._target = target
        self._report = report
        self._wait = wait
        self._progress = MoveProgress()

    def run(self) -> MoveProgress:
        """Move every user of the shard, then the shard itself, and delete the old copies."""
        placement = next(each for each in self._directory.placements() if each.shard == self._shard)
        if placement.moving_to not in (None, self._target):
            raise StorageError(
                f"Shard {self._shard} is moving to store {placement.moving_to}. Complete that move first."
            )
        if placement.store == self._target:
            self._clean_others()
            return self._progress
        source = self._directory.engines[placement.store]
        target = self._directory.engines[self._target]
        for engine in (source, target):
            _require_row_security(engine)
        if placement.moving_to is None:
            self._directory.place(Placement(self._shard, placement.store, self._target))
            self._report(self._progress)
            self._wait(_SETTLE_SECONDS * _EMPTY_SHARE)
            if self._users(source):
                self._wait(_SETTLE_SECONDS * (1 - _EMPTY_SHARE))
        while len(users := self._users(source)) > _MAX_LEFT:
            for user in users:
                self._move(source, target, user)
        self._close(source, target)
        self._directory.place(Placement(self._shard, self._target))
        if self._old_copies(source):
            self._wait(_SETTLE_SECONDS)
        self._clean(source, placement.store)
        return self._progress

    def _users(self, source: PostgresEngine) -> list[str]:
        """The users of the shard who have rows in the source and have not moved."""
        with source.writing() as connection:
            return _list_users(connection, self._shard)

    def _move(self, source: PostgresEngine, target: PostgresEngine, user: str) -> None:
        with source.writing() as reading:
            assert isinstance(reading, PostgresConnection)
            reading.execute(_NO_TIMEOUT)
            lock_user(reading, user)
            self._copy(reading, target, user)
            _note_moved(reading, user, self._target)
        self._count(users=1)

    def _close(self, source: PostgresEngine, target: PostgresEngine) -> None:
        """Move the last users, with the whole shard locked, so that no user can be added to the source meanwhile."""
        with source.writing() as reading:
            assert isinstance(reading, PostgresConnection)
            reading.execute(_NO_TIMEOUT)
            lock_shard(reading, self._shard)
            for user in _list_users(reading, self._shard):
                self._copy(reading, target, user)
                _note_moved(reading, user, self._target)
                self._count(users=1)
            reading.execute(
                "INSERT INTO moved_shards (shard, store) VALUES (?, ?)"
                " ON CONFLICT (shard) DO UPDATE SET store = excluded.store",
                (self._shard, self._target),
            )

    def _copy(self, reading: PostgresConnection, target: PostgresEngine, user: str) -> None:
        """Copy all rows of a user in one transaction of the target; what a killed move left there is replaced."""
        with _as_user(reading, user):
            separate_ids(target, self._target, _highest_ids(reading))
        with target.writing() as writing:
            assert isinstance(writing, PostgresConnection)
            tables = user_tables(writing)
            if missing := sorted(set(user_tables(reading)) - set(tables)):
                raise StorageError(f"{target.location} has no table {missing[0]}: use it once with this version first.")
            _prepare(writing, user)
            writing.execute("SET CONSTRAINTS ALL DEFERRED")
            for table in tables:
                writing.execute(f"DELETE FROM {table}")
            with _as_user(reading, user):
                for table in user_tables(reading):
                    self._count(rows=_copy_table(reading.raw, writing.raw, table))
                translate_positions(reading, writing, tables)
                keep_turn_marks(reading, writing, user)
            writing.execute("DELETE FROM moved_users WHERE user_id = ?", (user,))
            writing.execute("DELETE FROM moved_shards WHERE shard = ?", (self._shard,))

    def _clean_others(self) -> None:
        """Delete what an interrupted run left in stores that the shard has moved away from."""
        for number, engine in enumerate(self._directory.engines):
            if number != self._target:
                self._clean(engine, number)

    def _old_copies(self, source: PostgresEngine) -> list[str]:
        """The users of the shard who have moved away from the source, also in a run that was interrupted."""
        with source.reading() as connection:
            rows = connection.execute(
                f"SELECT user_id FROM moved_users WHERE {shard_expression('user_id')} = ?", (self._shard,)
            )
            return [user for (user,) in rows]

    def _clean(self, source: PostgresEngine, number: int) -> None:
        """Delete the old copies of users who have moved; the note that the shard has moved stays."""
        for user in self._old_copies(source):
            if self._directory.store_of(user or None) == number:
                continue
            with source.writing() as connection:
                assert isinstance(connection, PostgresConnection)
                tables = user_tables(connection)
                _prepare(connection, user)
                connection.execute("SET CONSTRAINTS ALL DEFERRED")
                # The indexes of nodes follow these changes, and remove the words of the user.
                connection.execute("INSERT INTO changes (session_id) SELECT id FROM sessions")
                connection.execute("INSERT INTO item_changes (item_id) SELECT DISTINCT item_id FROM memory_items")
                for table in tables:
                    connection.execute(f"DELETE FROM {table}")
                connection.execute("DELETE FROM moved_users WHERE user_id = ?", (user,))

    def _count(self, *, users: int = 0, rows: int = 0) -> None:
        self._progress = MoveProgress(self._progress.users + users, self._progress.rows + rows)
        self._report(self._progress)


def _require_row_security(engine: PostgresEngine) -> None:
    """A move reads exactly the rows that row-level security shows, so it must be in force."""
    with engine.writing() as connection:
        assert isinstance(connection, PostgresConnection)
        tables = user_tables(connection)
        if reason := row_security.why_not_effective(connection.raw, tables):
            raise StorageError(
                f"Row-level security has no effect in {engine.location}: {reason}. A move needs it: log in with a "
                "plain role."
            )


def _highest_ids(connection: PostgresConnection) -> dict[tuple[str, str], int]:
    """The highest ids of the visible rows."""
    tables = set(user_tables(connection))
    highest = {}
    for table, column, _ in id_sequences(connection):
        if table in tables:
            (last,) = connection.execute(f"SELECT COALESCE(max({column}), 0) FROM {table}").fetchone()
            highest[table, column] = int(last)
    return highest


def _list_users(connection: object, shard: int) -> list[str]:
    assert isinstance(connection, PostgresConnection)
    tables = [table for table in user_tables(connection) if table != "messages"]
    users: set[str] = set()
    for table in tables:
        if column := user_column(connection, table):
            user = f"COALESCE({column}, '')"
            rows = connection.execute(
                f"SELECT DISTINCT {user} FROM {table} WHERE {shard_expression(user)} = ?"
                f" AND {user} NOT IN (SELECT user_id FROM moved_users)",
                (shard,),
            )
            users |= {user for (user,) in rows}
    return sorted(users)


def _note_moved(connection: PostgresConnection, user: str, store: int) -> None:
    connection.execute(
        "INSERT INTO moved_users (user_id, store) VALUES (?, ?)"
        " ON CONFLICT (user_id) DO UPDATE SET store = excluded.store",
        (user, store),
    )


def _prepare(connection: PostgresConnection, user: str) -> None:
    """Let a transaction see and change the rows of one user only, whatever the fences say."""
    connection.execute(f"SELECT {SET_MOVING}")
    connection.execute(row_security.set_locally(row_security.setting_of(user)))


@contextmanager
def _as_user(connection: PostgresConnection, user: str) -> Iterator[None]:
    connection.execute(row_security.set_locally(row_security.setting_of(user)))
    yield
    connection.execute(row_security.set_locally(row_security.EVERYONE))


def _copy_table(source: RawConnection, target: RawConnection, table: str) -> int:
    """Copy the visible rows of a table; they get new positions in the feed of the target."""
    columns = _columns(target, table)
    if missing := sorted(set(columns) ^ set(_columns(source, table))):
        raise StorageError(f"The table {table} has the column {missing[0]} in one store only: upgrade both first.")
    names = ", ".join(columns)
    target.execute(f"CREATE TEMP TABLE moving ON COMMIT DROP AS SELECT {names} FROM {table} WITH NO DATA")
    with (
        source.cursor().copy(f"COPY (SELECT {names} FROM {table}) TO STDOUT (FORMAT binary)") as reading,
        target.cursor().copy(f"COPY moving ({names}) FROM STDIN (FORMAT binary)") as writing,
    ):
        for part in reading:
            writing.write(part)
    # The rows come in the order of their ids, because they get their positions in the feed in this order.
    order = "id" if "id" in columns else columns[0]
    count = target.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM moving ORDER BY {order}").rowcount
    target.execute("DROP TABLE moving")
    return count


def _columns(connection: RawConnection, table: str) -> list[str]:
    """The columns to copy: all but the transaction number, which the target assigns."""
    rows: list[tuple[str]] = connection.execute(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"
        " AND atttypid <> 'xid8'::regtype ORDER BY attname",
        [table],
    ).fetchall()
    return [name for (name,) in rows]
