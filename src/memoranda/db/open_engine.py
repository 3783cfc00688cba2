"""Chooses the engine for a location; today every location is a SQLite file."""

from pathlib import Path

from memoranda.db.engine import Engine
from memoranda.db.schema import Schema
from memoranda.db.sqlite_engine import open_sqlite_engine


def open_engine(location: Path | str, schema: Schema, application_id: int, *, wait: float = 10.0) -> Engine:
    """Open the database at a location, or create it, with the tables of `schema`.

    `wait` is how many seconds a transaction waits for others. A database that a newer program wrote is refused.
    """
    return open_sqlite_engine(Path(location), schema, application_id, wait=wait)
