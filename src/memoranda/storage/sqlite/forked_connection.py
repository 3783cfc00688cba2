"""Connections to SQLite that a child of the process that opened them neither uses nor closes."""

import sqlite3
from typing import Any, NoReturn

from memoranda.storage.forks import forked_error, keep_in_children


class Connection(sqlite3.Connection):
    """A connection for the process that opened it: `sqlite3.connect(…, factory=Connection)`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        keep_in_children(self)

    def leave_to_parent(self) -> None:
        """Refuse every use from now on, because this is the child of a fork."""
        self.__class__ = _ParentsConnection


class _ParentsConnection(Connection):
    """What a connection becomes in a child."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise forked_error("This database")

    execute = executemany = executescript = cursor = backup = commit = rollback = _refuse

    def close(self) -> None:
        """Leave the connection to the parent."""
