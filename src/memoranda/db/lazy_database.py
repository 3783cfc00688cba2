"""A database that is opened, or created, at its first use; checking whether it exists creates nothing."""

import threading
from pathlib import Path

from memoranda.db import fork_safety
from memoranda.db.orphaned_wal import database_exists
from memoranda.db.schema import Schema
from memoranda.db.schema_upgrade import open_database
from memoranda.db.sqlite import Database

_OPEN_TIMEOUT = 10.0


class LazyDatabase:
    """One file and its tables, shared by the threads of a process; it can be opened again after `close`."""

    def __init__(self, path: Path, schema: Schema, application_id: int, *, wait: float = 10.0) -> None:
        self.path = path
        self._schema = schema
        self._application_id = application_id
        self._wait = wait
        self._opening = threading.Lock()
        self._database: Database | None = None
        fork_safety.watch(self, opens=True)

    def exists(self) -> bool:
        return self._database is not None or database_exists(self.path)

    def open(self) -> Database:
        """The database, with its tables."""
        with self._opening:
            if self._database is None:
                self._database = open_database(self.path, self._schema, self._application_id, wait=self._wait)
            return self._database

    def close(self) -> None:
        with self._opening:
            if self._database is not None:
                self._database.close()
                self._database = None

    def hold_for_fork(self) -> bool:
        """Wait for a thread that is opening the database, and prevent others from starting."""
        return self._opening.acquire(timeout=_OPEN_TIMEOUT)

    def resume_after_fork(self) -> None:
        self._opening.release()

    def reset_in_child(self) -> None:
        self._opening = threading.Lock()
