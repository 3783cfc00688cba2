"""A database that is opened, or created, at its first use, in a file or on a server.

Checking whether it exists creates nothing. The code for servers is loaded only if one is configured. Every component
has a schema of its own with a version of its own. The components that use a file in one process share the connections
to it, as they share those to a server.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.errors import ConfigError
from memoranda.storage.engine import Engine
from memoranda.storage.orphaned_wal import database_exists
from memoranda.storage.schema import Schema
from memoranda.storage.sqlite.engine import SqliteEngine, with_tables
from memoranda.storage.sqlite.schema_upgrade import upgrade_component

if TYPE_CHECKING:
    from memoranda.storage.postgres.engine import PostgresEngine

_registry = threading.Lock()
_engines: "dict[tuple[Path, float], SharedFile]" = {}


class SharedFile(SqliteEngine):
    """The connections to a file with the tables of several components; closed when its last user has closed it."""

    def __init__(self, path: Path, application_id: int, wait: float) -> None:
        super().__init__(path, application_id=application_id, wait=wait)
        self.users = 1

    def _upgrade(self, schema: Schema) -> None:
        upgrade_component(self, schema)

    def close(self) -> None:
        with _registry:
            self.users -= 1
            if self.users:
                return
            if _engines.get((self.path, self._wait)) is self:
                del _engines[self.path, self._wait]
        super().close()


def _shared_file(path: Path, application_id: int, wait: float) -> SharedFile:
    with _registry:
        engine = _engines.get((path, wait))
        if engine is None:
            engine = _engines[path, wait] = SharedFile(path, application_id, wait)
        else:
            engine.users += 1
        return engine


class LazyDatabase:
    """The tables of one component, in a file or on a server; threads share it, and it can be opened after `close`."""

    def __init__(
        self,
        path: Path,
        schema: Schema,
        application_id: int,
        *,
        server_url: str = "",
        wait: float = 10.0,
    ) -> None:
        """`server_url` names the server that has the tables instead of the file. `wait` is how long locks may take."""
        self.path = path
        self.server_url = server_url
        self._schema = schema
        self._application_id = application_id
        self._wait = wait
        self._opening = threading.Lock()
        self._engine: Engine | None = None

    def exists(self) -> bool:
        """Whether there is a database; a server always has one."""
        return self._engine is not None or bool(self.server_url) or database_exists(self.path)

    def open(self) -> Engine:
        """The engine, with the tables."""
        with self._opening:
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def fetch_all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one statement, of all users; none while there is no database, and none is created."""
        if not self.exists():
            return []
        with self.open().reading() as connection:
            return connection.execute(statement, values).fetchall()

    def close(self) -> None:
        with self._opening:
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def _open(self) -> Engine:
        if self.server_url:
            return open_server_engine(self.server_url, self._schema, lock_timeout=self._wait)
        return with_tables(_shared_file(self.path, self._application_id, self._wait), self._schema)


@contextmanager
def opened_for_everyone(database: LazyDatabase) -> Iterator[Engine]:
    """The tables with the rows of all users; closed at the end."""
    with closing(database):
        yield database.open().acting_for(None, everyone=True)


def users_of(engine: Engine, tables: Mapping[str, str]) -> list[str]:
    """The users with rows in these tables, each with an expression for its user; the home's owner has none or ''."""
    found: set[str | None] = set()
    with engine.acting_for(None, everyone=True).reading() as connection:
        for table, user in tables.items():
            found |= {name for (name,) in connection.execute(f"SELECT DISTINCT {user} FROM {table}").fetchall()}
    return sorted(name for name in found if name)


def open_server_engine(
    url: str, schema: Schema, *, wait: float = 10.0, lock_timeout: float | None = None
) -> "PostgresEngine":
    """Open the database at a URL with the tables of a component; engines for one URL share their connections.

    `wait` is how many seconds a call may wait for the server and its locks; `lock_timeout` is a shorter or longer limit
    for one component, which shares the connections of the others.
    Raises ConfigError if psycopg is not installed, and StorageError, at once, if the server cannot be used.
    """
    try:
        from memoranda.storage.postgres.engine import open_postgres_engine  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise
        raise ConfigError(
            "The record is on a PostgreSQL server, and psycopg is not installed: pip install 'memoranda[postgres]'."
        ) from error
    return open_postgres_engine(url, schema, wait=wait, lock_timeout=lock_timeout)


def server_url_of(engine: Engine) -> str:
    """The URL of an engine's server, with the password, for other parts that have tables there; "" for a file."""
    return str(getattr(engine, "server_url", ""))
