"""The connections of one process to one server, shared by all engines for the same URL, with its address and errors.

    postgresql://user:password@host:5432/database?schema=memoranda&pool=10

`schema` is the PostgreSQL schema with all tables. `pool` is the maximum number of connections of one process.
`pgbouncer=true` avoids everything that belongs to a session, for poolers in transaction mode; `direct=host:port` is
then the address of the server itself, for notifications and the locks of turns. All other parameters are libpq's.
Errors of psycopg become Memoranda's, which say what to do and never contain a password.

A connection may have died while it was idle: the server was restarted, or a firewall forgot it. No query checks for
that before each use, because it would double the round trips. Instead the first statement on a connection tells, and
the caller asks for another one, since nothing was sent before. The pool belongs to the process that made it: the
child of a fork opens another one.
"""

import logging
import re
import threading
import time
from collections import Counter
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors as pg
from psycopg_pool import ConnectionPool, PoolTimeout

from memoranda.errors import ConfigError, LockTimeoutError, MovedUserError, StorageError, StoreUnavailableError
from memoranda.storage.forks import is_of_parent, process_mark
from memoranda.storage.postgres.connection import ADAPTATION, RawConnection
from memoranda.support.lazy_dataclass import dataclass

DEFAULT_SCHEMA = "memoranda"
DEFAULT_POOL = 10
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")


def without_password(url: str) -> str:
    """The URL of a server as messages may show it: without a password, and without parameters."""
    parts = urlsplit(url)
    credentials, at, host = parts.netloc.rpartition("@")
    return urlunsplit(("postgresql", credentials.partition(":")[0] + at + host, parts.path, "", ""))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A parsed URL. `conninfo` and `direct` contain the password and must not be shown; `location` may be."""

    conninfo: str
    direct: str
    schema: str
    pool_size: int
    pgbouncer: bool
    location: str

    @classmethod
    def parse(cls, url: str) -> "ServerAddress":
        """Raises ConfigError, without the password, if the URL cannot be used."""
        shown = without_password(url)
        parts = urlsplit(url)
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema = parameters.pop("schema", DEFAULT_SCHEMA)
        if not _NAME.fullmatch(schema):
            raise ConfigError(
                f"The schema {schema!r} of {shown} is not a plain name: use lower-case letters, digits and underscores."
            )
        pool = parameters.pop("pool", str(DEFAULT_POOL))
        if not pool.isdecimal() or not 1 <= int(pool) <= 1000:
            raise ConfigError(f"The parameter pool={pool!r} of {shown} is not a number from 1 to 1000.")
        pgbouncer = parameters.pop("pgbouncer", "false").lower() in ("true", "1", "yes", "on")
        direct_host = parameters.pop("direct", "")
        query = urlencode(parameters, quote_via=quote)
        conninfo = urlunsplit(("postgresql", parts.netloc, parts.path, query, ""))
        credentials, at, _ = parts.netloc.rpartition("@")
        direct = urlunsplit(("postgresql", f"{credentials}{at}{direct_host}", parts.path, query, ""))
        return cls(conninfo, direct if direct_host else conninfo, schema, int(pool), pgbouncer, shown)


_REFUSED_LOGIN = (pg.InvalidPassword, pg.InvalidAuthorizationSpecification)
_SHUTTING_DOWN = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.IdleSessionTimeout)
_TRANSIENT = (pg.DeadlockDetected, pg.SerializationFailure)
MOVED = "MM001"
"""The SQLSTATE of an error that our own triggers raise: the user has moved to another server."""
_FULL = (pg.DiskFull, pg.OutOfMemory, pg.TooManyConnections, pg.ConfigurationLimitExceeded)


def connection_was_lost(error: BaseException, connection: psycopg.Connection[object] | None = None) -> bool:
    """Whether an error means that the connection is of no use any more, and not that the statement was wrong."""
    if isinstance(error, _SHUTTING_DOWN):
        return True
    if connection is not None and connection.broken:
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def is_transient(error: BaseException | None) -> bool:
    """Whether the server rolled a transaction back only because of others that ran at the same time."""
    return isinstance(error, _TRANSIENT)


class _RolledBackError(StoreUnavailableError):
    """The connection was lost before anything was committed."""


def was_rolled_back(error: StorageError) -> bool:
    """Whether an error certainly left nothing behind and may not occur again."""
    return isinstance(error, _RolledBackError) or is_transient(error.__cause__)


def storage_error(error: psycopg.Error, location: str, wait: float) -> StorageError:
    """The error of Memoranda for one of psycopg's; `wait` is how many seconds the caller tried."""
    reason = first_line(error)
    if isinstance(error, (pg.LockNotAvailable, *_TRANSIENT)):
        return LockTimeoutError(
            f"Another writer has kept a lock in {location} for {wait:g} s, or both waited for each other. "
            "Nothing was written; try again."
        )
    if error.sqlstate == MOVED:
        return MovedUserError(f"{location} no longer has this user: {reason}. Nothing was written.")
    if isinstance(error, _REFUSED_LOGIN):
        return StorageError(f"{location} refuses the login: {reason}. Check user and password in store.url.")
    if connection_was_lost(error):
        return _RolledBackError(_cannot_be_reached(location, reason))
    if isinstance(error, pg.InsufficientPrivilege):
        return StorageError(f"{location} does not permit this: {reason}. Nothing was written.")
    if isinstance(error, _FULL):
        return StorageError(f"{location} has no room left: {reason}. Nothing was written.")
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return StorageError(f"{location} is a read-only server, such as a standby. Use the address of the primary.")
    return StorageError(f"{location} cannot be used: {reason}.")


def _cannot_be_reached(location: str, reason: str) -> str:
    return (
        f"The database at {location} cannot be reached: {reason}. Nothing was written. "
        "Start the server or correct store.url; then try again."
    )


def rolled_back_error(location: str) -> StoreUnavailableError:
    """The error after a connection was lost before its transaction was committed."""
    return _RolledBackError(
        f"The connection to {location} was lost, and the server rolled the change back. Nothing was written; try again."
    )


def unknown_outcome_error(location: str) -> StoreUnavailableError:
    """The error after a connection was lost while a transaction was being committed."""
    return StoreUnavailableError(
        f"The connection to {location} was lost during a commit, so it is not known whether the change was saved. "
        "Read it back before you repeat it."
    )


def first_line(error: BaseException) -> str:
    """What an error says, without hints and without the final period."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


_CONNECT_TIMEOUT = 5
# The pool itself stops trying after this time; the next caller starts it again.
_RECONNECT_SECONDS = 2.0
_PREPARE_AFTER = 2
_PREPARED = 300
_ATTEMPT_SECONDS = 1.0
# A server that does not answer at all, such as one behind a cut network, is noticed after this time.
_NETWORK: dict[str, Any] = {
    "keepalives_idle": 10, "keepalives_interval": 3, "keepalives_count": 3, "tcp_user_timeout": 15_000,
}  # fmt: skip

# The pool logs every failed attempt; the caller gets an error that says the same.
logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
# A pipeline that ends after an error warns of its own end too; the caller gets the first error.
logging.getLogger("psycopg").setLevel(logging.ERROR)


class _Connection(psycopg.Connection[Any]):
    """A connection that keeps only some statements prepared."""

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> "_Connection":
        connection = super().connect(*arguments, **options)
        connection.prepared_max = _PREPARED
        return connection


def connect_options(address: ServerAddress, wait: float) -> dict[str, Any]:
    """The options of every connection; the settings of the session need no round trip of their own."""
    settings = {
        "search_path": address.schema,
        "lock_timeout": int(wait * 1000),
        "client_min_messages": "warning",
        # A process that was stopped inside a transaction must not hold locks and followers for ever.
        "idle_in_transaction_session_timeout": 60_000,
    }
    options: dict[str, Any] = {
        "autocommit": True,
        "cursor_factory": psycopg.RawCursor,
        "context": ADAPTATION,
        "prepare_threshold": None if address.pgbouncer else _PREPARE_AFTER,
        "connect_timeout": _CONNECT_TIMEOUT,
        "application_name": "memoranda",
        "client_encoding": "utf8",
        **_NETWORK,
    }
    known = psycopg.conninfo.conninfo_to_dict(address.conninfo)
    if not address.pgbouncer:
        own = " ".join(f"-c {name}={value}" for name, value in settings.items())
        options["options"] = f"{known.get('options', '')} {own}".strip()
    # What the URL says comes first.
    return {name: value for name, value in options.items() if name == "options" or name not in known}


class ServerPool:
    """Hands out connections, at most `pool_size` at a time, and replaces those that have died."""

    def __init__(self, address: ServerAddress, wait: float) -> None:
        self.address = address
        self._wait = wait
        self._options = connect_options(address, wait)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[_Connection] | None = None
        self.opened_in = process_mark()
        self.users = 0

    def connect(self, conninfo: str = "") -> RawConnection:
        """A connection outside the pool, which the caller closes; raises StorageError at once if that fails."""
        try:
            return _Connection.connect(conninfo or self.address.conninfo, **self._options)
        except psycopg.Error as error:
            raise storage_error(error, self.address.location, self._wait) from error

    def acquire(self, deadline: float) -> RawConnection:
        """A connection that the caller returns with `release`; raises StorageError after the deadline."""
        while True:
            try:
                return self._open_pool().getconn(timeout=max(0.01, min(_ATTEMPT_SECONDS, deadline - time.monotonic())))
            except PoolTimeout as error:
                if time.monotonic() >= deadline:
                    raise self._explain() from error

    def release(self, connection: RawConnection) -> None:
        """Return a connection; one that is inside a transaction or broken is closed."""
        pool = self._pool
        if pool is None or is_of_parent(self.opened_in):
            return
        pool.putconn(connection)  # type: ignore[arg-type]

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def statistics(self) -> dict[str, int]:
        """How many connections there are, and how many callers waited for one."""
        return dict(self._pool.get_stats()) if self._pool is not None else {}

    def _open_pool(self) -> "ConnectionPool[_Connection]":
        pool = self._pool
        if pool is not None:
            return pool
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.address.conninfo, connection_class=_Connection, kwargs=self._options, min_size=0,
                    max_size=self.address.pool_size, open=True, num_workers=2, reconnect_timeout=_RECONNECT_SECONDS,
                    name="memoranda",
                )  # fmt: skip
            return self._pool

    def _explain(self) -> StorageError:
        """Whether the server cannot be reached, or all connections are in use."""
        try:
            self.connect().close()
        except StorageError as reason:
            return reason
        use = (
            f"all {self.address.pool_size} connections of this process have been in use for {self._wait:g} s. "
            "A larger pool= in store.url permits more"
        )
        return StoreUnavailableError(_cannot_be_reached(self.address.location, use))


# The last part is that of this process: the child of a fork leaves the pools of its parent alone.
_pools: dict[tuple[ServerAddress, float, int], ServerPool] = {}
_registry = threading.Lock()


def shared_pool(address: ServerAddress, wait: float) -> ServerPool:
    """The pool of this process for an address; every caller calls `release_pool` once."""
    with _registry:
        key = (address, wait, process_mark())
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = ServerPool(address, wait)
        pool.users += 1
        return pool


def release_pool(pool: ServerPool) -> None:
    """Close a pool when its last user has released it."""
    with _registry:
        pool.users -= 1
        last = pool.users == 0
        if last:
            _pools.pop((pool.address, pool._wait, pool.opened_in), None)
    if last:
        pool.close()


def sum_statistics() -> Counter[str]:
    """What the pools of this process count, summed: connections, and how often and how long callers waited for one."""
    with _registry:
        pools = list(_pools.values())
    total: Counter[str] = Counter()
    for pool in pools:
        total.update(pool.statistics())
    return total
