"""PostgreSQL as the engine of the record: a schema of a database, used by many processes on many machines.

Writers of different sessions do not wait for each other: instead of SQLite's one writer at a time, every operation that
reads a session and writes accordingly locks that session. A transaction is durable when the server has flushed it. A
read-only transaction begins with its first statement, in the same round trip.
"""

import copy
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Self, TypeVar

import psycopg

from memoranda.errors import StorageError
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, FeedTable, Statement, last_position
from memoranda.storage.forks import is_of_parent, require_same_process
from memoranda.storage.position import Position
from memoranda.storage.postgres import row_security
from memoranda.storage.postgres.connection import (
    PostgresConnection,
    PostgresRows,
    RawConnection,
    execute,
    restored_rows,
)
from memoranda.storage.postgres.dialect import Horizon, PostgresDialect
from memoranda.storage.postgres.notifications import Watch
from memoranda.storage.postgres.pool import (
    ServerAddress,
    connection_was_lost,
    is_transient,
    release_pool,
    rolled_back_error,
    shared_pool,
    storage_error,
    unknown_outcome_error,
    was_rolled_back,
)
from memoranda.storage.postgres.row_security import SETTING
from memoranda.storage.postgres.schema import upgrade_schema
from memoranda.storage.postgres.turn_locks import TurnLock, TurnLocks
from memoranda.storage.schema import Schema

_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SET = f"SELECT set_config('{SETTING}', ?, true)"
_SET_WITH_TIMEOUT = f"SELECT set_config('{SETTING}', ?, true), set_config('lock_timeout', ?, true)"

_Answer = TypeVar("_Answer")

_BEGIN = "BEGIN"
# The number of the transaction comes with the lock: should the connection be lost during the commit, it tells whether
# the transaction was committed. It is assigned after the lock, so that the feed has a session's messages in order.
_LOCK = "pg_advisory_xact_lock(hashtextextended(?, {}))"
_LOCK_SESSION, _LOCK_TITLES = _LOCK.format(1), _LOCK.format(2)
# Another one after a crash, which resets the statistics, and the same after an orderly restart.
_LIFE = "COALESCE(pg_stat_get_bgwriter_stat_reset_time()::text, '')"
# Whether the server crashed since, and the outcome of a transaction whose number it knows.
_OUTCOME = (
    f"SELECT {_LIFE} <> ?, CASE WHEN {_LIFE} = ? OR ?::text::xid8 < pg_snapshot_xmax(pg_current_snapshot())"
    " THEN pg_xact_status(?::text::xid8) END"
)
_PAUSE = 0.05
# How long the clocks of a node and the server are taken to run alike.
_CLOCK_SECONDS = 300.0


class ReadView:
    """One consistent view; nothing is sent before its first statement.

    `setting` says for whom the next statement acts (see `row_security`). A nested read may change it, and the change
    travels with the statement. `shared` says whether there was one: several reads then see the same state.
    """

    __slots__ = ("_applied", "_engine", "raw", "setting", "shared")

    def __init__(self, engine: "PostgresEngine") -> None:
        self._engine = engine
        self._applied = ""
        self.setting = engine._setting
        self.shared = False
        self.raw: RawConnection | None = None

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> PostgresRows:
        raw = self.raw
        if raw is None:
            return self._begin(statement, values)
        if self._applied == self.setting:
            return PostgresRows(execute(raw, statement, values))
        with raw.pipeline():
            execute(raw, _SET, [self.setting])
            cursor = execute(raw, statement, values)
        self._applied = self.setting
        return PostgresRows(cursor)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        for row in rows:
            self.execute(statement, row)

    def _begin(self, statement: str, values: Sequence[Any]) -> PostgresRows:
        """Begin on a new connection; nothing was read before, so another one may replace a connection that is lost."""
        found: list[PostgresRows] = []

        def begin(raw: RawConnection) -> RawConnection:
            with raw.pipeline():
                raw.execute(_BEGIN_READING)
                self.apply(raw)
                cursor = execute(raw, statement, values)
            found.append(PostgresRows(cursor))
            return raw

        self.raw = self._engine._with_connection(begin, keep=True)
        self._applied = self.setting
        return found[-1]

    def read_at_once(self, statements: Sequence[Statement]) -> list[list[Any]]:
        """The rows of some statements. If they are all of the view, it needs no statement to begin or end it."""
        if self.shared or self.raw is not None:
            return [self.execute(*one).fetchall() for one in statements]

        def run(raw: RawConnection) -> list[list[Any]]:
            # What is sent in one pipeline is one transaction.
            with raw.pipeline():
                self.apply(raw)
                cursors = [execute(raw, *one) for one in statements]
            return [restored_rows(cursor.fetchall()) for cursor in cursors]

        return self._engine._with_connection(run)

    def apply(self, raw: RawConnection) -> None:
        """Say for whom the transaction acts, and how long it waits for locks."""
        timeout = self._engine._lock_timeout
        statement, values = (_SET_WITH_TIMEOUT, [self.setting, timeout]) if timeout else (_SET, [self.setting])
        execute(raw, statement, values)


class _State:
    """What all views of one engine share."""

    def __init__(self, address: ServerAddress, wait: float) -> None:
        self.closed = False
        self.local = threading.local()
        self.pool = shared_pool(address, wait)
        self.turns = TurnLocks(self.pool)
        self.horizon: Horizon | None = None
        self.feeds: list[str] = []
        self.user_tables: list[str] = []
        self.clock_offset = 0.0
        self.ask_time_at = 0.0

    @property
    def inside(self) -> PostgresConnection | ReadView | None:
        """The transaction of this thread."""
        return getattr(self.local, "inside", None)


class PostgresEngine:
    """An open database. Every thread may use it; a transaction uses one connection of the pool of this process."""

    dialect = PostgresDialect()
    journal = "wal"
    read_only = False

    def __init__(self, url: str, *, wait: float = 10.0, lock_timeout: float | None = None) -> None:
        self.server_url = url
        self.address = ServerAddress.parse(url)
        self._wait = wait if lock_timeout is None else lock_timeout
        self._setting = row_security.EVERYONE
        # Behind a pooler in transaction mode, the session has none of its own.
        sets_timeout = self.address.pgbouncer or self._wait != wait
        self._lock_timeout = str(int(self._wait * 1000)) if sets_timeout else ""
        self._session_settings = f"SET LOCAL lock_timeout = {self._lock_timeout}; " if self._lock_timeout else ""
        self._state = _State(self.address, wait)

    @property
    def location(self) -> str:
        return self.address.location

    @property
    def closed(self) -> bool:
        return self._state.closed or is_of_parent(self._state.pool.opened_in)

    def acting_for(self, user: str | None, *, everyone: bool = False) -> Self:
        setting = row_security.EVERYONE if everyone else row_security.setting_of(user)
        if setting == self._setting:
            return self
        view = copy.copy(self)
        view._setting = setting
        return view

    @property
    def user_tables(self) -> list[str]:
        """The tables that have rows of several users."""
        return self._state.user_tables

    @property
    def feed_tables(self) -> list[str]:
        """The tables that followers read in the order of commits."""
        return self._state.feeds

    def create_tables(self, schema: Schema) -> None:
        self.inspect(lambda raw: upgrade_schema(raw, schema, self.address.schema, self.location))
        self._state.feeds += [table for table, _ in schema.server.feeds]
        protected = (*schema.server.user_tables, *schema.server.shared_user_tables)
        self._state.user_tables += [table for table, _ in protected]
        self._state.horizon = Horizon(self._state.feeds) if self._state.feeds else None

    def wait_for_feed(self, feeds: Sequence[FeedTable] = (), *, visible: bool = False) -> list[Position]:
        if self._state.horizon is not None and self._state.inside is None:
            return self._state.horizon.heads(feeds, self._ask, visible=visible)
        with self.reading() as connection:
            return [last_position(self.dialect, connection, feed) for feed in feeds]

    def heads_and_rows(
        self, feeds: Sequence[FeedTable], statements: Sequence[Statement]
    ) -> tuple[list[Position], list[list[Any]]]:
        rows: list[list[Any]] = []

        def ask(statement: str, values: Sequence[Any]) -> Any:
            def run(raw: RawConnection) -> Any:
                with raw.pipeline():
                    heads = execute(raw, statement, values)
                    ReadView(self).apply(raw)
                    cursors = [execute(raw, *one) for one in statements]
                rows[:] = [restored_rows(cursor.fetchall()) for cursor in cursors]
                return heads.fetchone()

            return self._ask(statement, values) if rows else self._with_connection(run)

        if self._state.horizon is None or self._state.inside is not None:
            with self.reading() as view:
                return self.wait_for_feed(feeds, visible=True), self.dialect.read_at_once(view, statements)
        return self._state.horizon.heads(feeds, ask, visible=True), rows

    def _ask(self, statement: str, values: Sequence[Any]) -> Any:
        return self._execute_alone(statement, values)[0]

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if self._state.inside is not None:
            raise RuntimeError(f"A write to {self.location} began inside another transaction of the same thread.")
        with self._transaction() as connection:
            try:
                yield connection
            except BaseException as error:
                self._roll_back(connection.raw)
                if isinstance(error, psycopg.Error):
                    raise storage_error(error, self.location, self._wait) from error
                raise
            self._commit(connection)

    def write(self, work: Callable[[Connection], _Answer]) -> _Answer:
        deadline = time.monotonic() + self._wait
        while True:
            try:
                with self.writing() as connection:
                    return work(connection)
            except StorageError as error:
                if not was_rolled_back(error) or time.monotonic() >= deadline:
                    raise

    def write_statement(self, statement: str, values: Sequence[Any]) -> list[Any]:
        return restored_rows(self._execute_alone(statement, values))

    def locked_session(self, session_id: str) -> Condition:
        # The subquery runs before the row is looked up, since its result is what the row is looked up by.
        return Condition(
            f"(SELECT CASE WHEN {row_security.SET_EXPRESSION} <> '' AND {_LOCK_SESSION} IS NOT NULL THEN ?::text END)",
            (self._setting, self._lock_name(session_id), session_id),
        )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        outer = self._state.inside
        if outer is None:
            with self._read_view() as view:
                yield view
            return
        if not isinstance(outer, ReadView):
            raise RuntimeError("A read inside a write must use the connection of the write.")
        # The same view, perhaps for another user.
        outer.shared = True
        previous, outer.setting = outer.setting, self._setting
        try:
            yield outer
        finally:
            outer.setting = previous

    @contextmanager
    def _read_view(self) -> Iterator[ReadView]:
        state = self._state
        self._refuse_closed()
        view = ReadView(self)
        state.local.inside = view
        try:
            yield view
        except psycopg.Error as error:
            raise storage_error(error, self.location, self._wait) from error
        finally:
            state.local.inside = None
            if view.raw is not None:
                self._roll_back(view.raw)
                state.pool.release(view.raw)

    @contextmanager
    def across_users(self, connection: Connection) -> Iterator[None]:
        if not isinstance(connection, PostgresConnection) or connection.setting == row_security.EVERYONE:
            yield
            return
        previous = connection.setting
        self._change_user(connection, row_security.EVERYONE)
        yield
        self._change_user(connection, previous)

    def lock_session(self, connection: Connection, session_id: str) -> None:
        self._lock(connection, _LOCK_SESSION, session_id)

    def lock_titles(self, connection: Connection, user_id: str | None) -> None:
        self._lock(connection, _LOCK_TITLES, user_id or "")

    def _lock(self, connection: Connection, lock: str, name: str) -> None:
        statement = f"SELECT {lock}, pg_current_xact_id()::text, {_LIFE}"
        _, *transaction = connection.execute(statement, (self._lock_name(name),)).fetchone()
        if isinstance(connection, PostgresConnection):
            connection.transaction_id, connection.server_life = transaction

    def _lock_name(self, name: str) -> str:
        """Locks belong to the whole database, and other schemas have sessions of the same name."""
        return f"{self.address.schema} {name}"

    def lock_turn(self, conversation_id: str, timeout: float) -> TurnLock:
        self._refuse_closed()
        return self._state.turns.acquire(conversation_id, timeout)

    def current_time(self) -> float:
        """The clock of the server, which is asked every few minutes."""
        now, state = time.monotonic(), self._state
        if now >= state.ask_time_at:
            ((asked,),) = self._execute_alone("SELECT extract(epoch FROM clock_timestamp())::double precision", ())
            state.clock_offset = asked - time.monotonic()
            state.ask_time_at = now + _CLOCK_SECONDS
        return now + state.clock_offset

    def watch(self, callback: Callable[[], object]) -> Watch:
        self._refuse_closed()
        return Watch(self._state.pool, callback)

    def shrink_log(self) -> bool:
        """Does nothing: the server removes deleted rows and recycles its log by itself."""
        return True

    def check(self, *, thorough: bool = False) -> list[str]:
        """Nothing to say: the server checks its own pages."""
        return []

    def vacuum(self, max_seconds: float | None = None) -> bool:
        """Let the server reuse the space of deleted rows; never rewrites a table, which would lock it."""
        self._execute_alone("VACUUM (SKIP_LOCKED) sessions, messages, changes", ())
        return True

    def release_space(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Does nothing: the server's autovacuum makes the space of deleted rows free for new ones."""
        return 0

    def inspect(self, ask: Callable[[RawConnection], _Answer]) -> _Answer:
        """Ask on a connection outside the pool."""
        with closing(self._state.pool.connect()) as raw:
            try:
                return ask(raw)
            except psycopg.Error as error:
                raise storage_error(error, self.location, self._wait) from error

    def close(self) -> None:
        if not self.closed:
            self._state.closed = True
            self._state.turns.close()
            release_pool(self._state.pool)

    def _refuse_closed(self) -> None:
        require_same_process(self._state.pool.opened_in, self.location)
        if self._state.closed:
            raise StorageError(f"{self.location} has been closed.")

    @contextmanager
    def _transaction(self) -> Iterator[PostgresConnection]:
        """A transaction that has begun, on a connection that returns to the pool when the block ends."""
        connection = PostgresConnection(self._begin(), self._setting)
        state = self._state
        state.local.inside = connection
        try:
            yield connection
        finally:
            state.local.inside = None
            state.pool.release(connection.raw)

    def _begin(self) -> RawConnection:
        """A connection with a new transaction; connections that have died are replaced."""

        def run(raw: RawConnection) -> RawConnection:
            raw.execute(f"{_BEGIN}; {self._session_settings}{row_security.set_locally(self._setting)}", prepare=False)
            return raw

        return self._with_connection(run, keep=True)

    def _execute_alone(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """Execute a statement as a transaction of its own, and again if the connection was lost meanwhile.

        So executing the statement twice must have the effect of once.
        """
        self._refuse_closed()

        def run(raw: RawConnection) -> list[Any]:
            cursor = execute(raw, statement, values)
            return cursor.fetchall() if cursor.description is not None else []

        return self._with_connection(run)

    def _with_connection(self, use: Callable[[RawConnection], _Answer], *, keep: bool = False) -> _Answer:
        """Use a connection, or another one if it was lost; `keep` does not return it to the pool."""
        self._refuse_closed()
        deadline, pool = time.monotonic() + self._wait, self._state.pool
        while True:
            raw = pool.acquire(deadline)
            succeeded = False
            try:
                answer = use(raw)
                succeeded = True
                return answer
            except self.dialect.row_refused:
                raise
            except psycopg.Error as error:
                lost = connection_was_lost(error, raw)
                if lost:
                    raw.close()
                elif keep:
                    self._roll_back(raw)
                if not (lost or is_transient(error)) or time.monotonic() >= deadline:
                    raise storage_error(error, self.location, self._wait) from error
            finally:
                if not (keep and succeeded):
                    pool.release(raw)

    def _change_user(self, connection: PostgresConnection, setting: str) -> None:
        connection.raw.execute(row_security.set_locally(setting), prepare=False)
        connection.setting = setting

    def _roll_back(self, raw: RawConnection) -> None:
        if is_of_parent(self._state.pool.opened_in):
            return
        try:
            if not raw.closed:
                raw.execute("ROLLBACK")
        except psycopg.Error:
            # The pool replaces it.
            raw.close()

    def _commit(self, connection: PostgresConnection) -> None:
        require_same_process(self._state.pool.opened_in, self.location)
        try:
            connection.raw.execute("COMMIT")
        except psycopg.Error as error:
            if not connection_was_lost(error, connection.raw):
                raise storage_error(error, self.location, self._wait) from error
            connection.raw.close()
            if not self._was_committed(connection, error):
                raise rolled_back_error(self.location) from error

    def _was_committed(self, connection: PostgresConnection, error: psycopg.Error) -> bool:
        """Ask the server for the outcome of a transaction whose commit got no answer.

        A server that crashed gives numbers that it had not written down to other transactions: "committed" may be said
        of one of these.
        """
        deadline, number, life = time.monotonic() + self._wait, connection.transaction_id, connection.server_life
        while number and time.monotonic() < deadline:
            ((crashed, status),) = self._execute_alone(_OUTCOME, [life, life, number, number])
            if status == "aborted" or (crashed and status != "committed"):
                return False
            if status == "committed":
                if crashed:
                    break
                return True
            time.sleep(_PAUSE)
        raise unknown_outcome_error(self.location) from error


def open_postgres_engine(
    url: str, schema: Schema, *, wait: float = 10.0, lock_timeout: float | None = None
) -> PostgresEngine:
    """Open a database with the tables of `schema`; raises NewerStoreError if a newer version created them."""
    engine = PostgresEngine(url, wait=wait, lock_timeout=lock_timeout)
    try:
        engine.create_tables(schema)
    except BaseException:
        engine.close()
        raise
    return engine
