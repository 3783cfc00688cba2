"""Connections to SQLite that a child of the process that opened them neither uses nor closes."""

import sqlite3
import sys
from contextlib import suppress
from typing import Any, NoReturn

from memoranda.storage.forks import forked_error, keep_in_children, run_in_children


class Connection(sqlite3.Connection):
    """A connection for the process that opened it: `sqlite3.connect(…, factory=Connection)`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # Before it is open, because another thread may fork meanwhile.
        keep_in_children(self)
        super().__init__(*arguments, **options)

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


def _release_mutexes() -> None:
    """Release SQLite's static mutexes, 2 to 13: what another thread held would stay locked in the child."""
    # Without a connection there is no ctypes; without a file or names, SQLite is a part of the interpreter.
    with suppress(KeyError, AttributeError, OSError):
        ctypes = sys.modules["ctypes"]
        library = ctypes.CDLL(sys.modules["_sqlite3"].__file__)
        library.sqlite3_mutex_alloc.restype = ctypes.c_void_p
        for number in range(2, 14):
            mutex = ctypes.c_void_p(library.sqlite3_mutex_alloc(number))
            library.sqlite3_mutex_try(mutex)
            library.sqlite3_mutex_leave(mutex)


run_in_children(_release_mutexes)
