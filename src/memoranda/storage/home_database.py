"""A database of a home that is opened at its first use: a file in the home, or tables on the server with the record."""

import threading
from pathlib import Path

from memoranda.storage import fork_safety
from memoranda.storage.engine import Engine
from memoranda.storage.open_server import open_server_engine
from memoranda.storage.orphaned_wal import database_exists
from memoranda.storage.schema import Schema
from memoranda.storage.sqlite.engine import open_sqlite_engine

_OPEN_TIMEOUT = 10.0


class HomeDatabase:
    """Opens the engine of one component at its first use; threads share it. A file is created by then."""

    def __init__(self, path: Path, schema: Schema, application_id: int, record: Path | str = "") -> None:
        """`record` is where the record is: if it is on a server, so are these tables, for all nodes of a fleet."""
        self.path = path
        self._schema = schema
        self._application_id = application_id
        self._server_url = record if isinstance(record, str) else ""
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        fork_safety.watch(self, opens=True)

    def exists(self) -> bool:
        """Whether there is a database; asking creates none."""
        return self._engine is not None or bool(self._server_url) or database_exists(self.path)

    def open(self) -> Engine:
        """The engine, with the tables of the schema."""
        with self._opening:
            if self._engine is None:
                if self._server_url:
                    self._engine = open_server_engine(self._server_url, self._schema)
                else:
                    self._engine = open_sqlite_engine(self.path, self._schema, self._application_id)
            return self._engine

    def close(self) -> None:
        with self._opening:
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def hold_for_fork(self) -> bool:
        """Wait for a thread that is opening the database, and prevent others from starting."""
        return self._opening.acquire(timeout=_OPEN_TIMEOUT)

    def resume_after_fork(self) -> None:
        self._opening.release()

    def reset_in_child(self) -> None:
        self._opening = threading.Lock()
