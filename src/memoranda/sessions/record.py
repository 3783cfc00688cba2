"""Opens the record: the database of a session store, without the parts that work on it."""

from pathlib import Path

from memoranda.db.engine import Engine
from memoranda.db.sqlite_engine import open_sqlite_engine
from memoranda.sessions.schema import SCHEMA
from memoranda.support.home import APPLICATION_ID


def open_record(location: Path | str, *, wait: float = 10.0) -> Engine:
    """Open the database of a session store, or create it; `wait` is how many seconds a write waits for others."""
    # Every location is a SQLite file today; another engine would be chosen here.
    return open_sqlite_engine(Path(location), SCHEMA, int.from_bytes(APPLICATION_ID, "big"), wait=wait)
