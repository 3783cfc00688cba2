"""One transaction of a SQLite database, as a context manager."""

import sqlite3
from typing import Protocol


class WritableDatabase(Protocol):
    """The parts of a database that a transaction needs."""

    control_cursor: sqlite3.Cursor | None
    """The cursor of the transaction that is open."""

    def begin(self, *, wait_for_lock: bool) -> sqlite3.Connection: ...
    def commit(self, control_cursor: sqlite3.Cursor | None) -> None: ...
    def roll_back(self, error: BaseException) -> None: ...
    def abandon(self) -> None: ...


class Transaction:
    """The context manager of `writing`: cheaper than a generator, which matters for every append."""

    # A class attribute, so that `__del__` works even if an interrupt prevented the initialisation.
    _cursor: sqlite3.Cursor | None = None

    def __init__(self, database: WritableDatabase, *, wait_for_lock: bool = True) -> None:
        self._database = database
        self._wait_for_lock = wait_for_lock

    def __enter__(self) -> sqlite3.Connection:
        connection = self._database.begin(wait_for_lock=self._wait_for_lock)
        self._cursor = self._database.control_cursor
        return connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._database.commit(self._cursor)
        elif self._cursor is self._database.control_cursor:
            self._database.roll_back(error)

    def __del__(self) -> None:
        # An interrupt can come between the last line of the block and the first line of `__exit__`.
        if self._cursor is not None and self._cursor is self._database.control_cursor:
            self._database.abandon()
