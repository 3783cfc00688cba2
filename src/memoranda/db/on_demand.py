"""A database that is opened, and made, when it is first needed; looking into one that is not there leaves no trace."""

import os
import threading
from pathlib import Path
from weakref import WeakSet

from memoranda.db.schema import Schema, bring_up, refuse_newer
from memoranda.db.sqlite import Database

_LONGEST_OPENING = 10.0


class OnDemand:
    """One file and its tables, shared by the threads of a process; after `close` it can be opened again."""

    def __init__(self, path: Path, schema: Schema, application_id: int, *, wait: float = 10.0) -> None:
        self.path = path
        self._schema = schema
        self._application_id = application_id
        self._wait = wait
        self._opening = threading.Lock()
        self._database: Database | None = None
        _live.add(self)

    def exists(self) -> bool:
        return self._database is not None or self.path.exists()

    def open(self) -> Database:
        """The database, with its tables."""
        with self._opening:
            if self._database is None:
                self._database = self._open()
            return self._database

    def close(self) -> None:
        with self._opening:
            if self._database is not None:
                self._database.close()
                self._database = None

    def hold_for_fork(self) -> bool:
        """Let nobody begin to open it; whoever does already comes to an end first."""
        return self._opening.acquire(timeout=_LONGEST_OPENING)

    def go_on_after_fork(self) -> None:
        self._opening.release()

    def leave_parent_process(self) -> None:
        self._opening = threading.Lock()

    def _open(self) -> Database:
        database = Database(
            self.path,
            application_id=self._application_id,
            inspect=lambda connection: refuse_newer(connection, self._schema, self.path),
            wait=self._wait,
        )
        try:
            bring_up(database, self._schema)
        except BaseException:
            database.close()
            raise
        return database


_live: WeakSet[OnDemand] = WeakSet()
_held: list[OnDemand] = []


def _before() -> None:
    _held.extend(each for each in list(_live) if each.hold_for_fork())


def _after_in_parent() -> None:
    while _held:
        _held.pop().go_on_after_fork()


def _after_in_child() -> None:
    _held.clear()
    for each in list(_live):
        each.leave_parent_process()


if hasattr(os, "register_at_fork"):
    # What is registered later comes first before a fork: here everything is opened or not yet begun when
    # `memoranda.db.forks`, which is imported above, looks which databases it has to hold.
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
