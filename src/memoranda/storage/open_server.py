"""Opens the database of a server, or says which package is missing."""

from typing import TYPE_CHECKING

from memoranda.errors import ConfigError
from memoranda.storage.schema import Schema

if TYPE_CHECKING:
    from memoranda.storage.postgres.engine import PostgresEngine


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
