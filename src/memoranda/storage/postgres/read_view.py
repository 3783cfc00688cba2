"""A read-only transaction that begins with its first statement, in the same round trip."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from memoranda.storage.postgres.connection import PostgresRows, RawConnection, execute
from memoranda.storage.postgres.row_security import SETTING

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SET = f"SELECT set_config('{SETTING}', ?, true)"
_SET_WITH_TIMEOUT = f"SELECT set_config('{SETTING}', ?, true), set_config('lock_timeout', ?, true)"

UseConnection = Callable[[Callable[[RawConnection], RawConnection]], RawConnection]
"""Calls a function with a connection, and with another one if the first was lost; keeps it on success."""


class ReadView:
    """One consistent view; nothing is sent before its first statement.

    `setting` says for whom the next statement acts (see `row_security`). A nested read may change it, and the change
    travels with the statement.
    """

    __slots__ = ("_applied", "_lock_timeout", "_use_connection", "raw", "setting")

    def __init__(self, use_connection: UseConnection, setting: str, lock_timeout: str = "") -> None:
        """`lock_timeout` in milliseconds, where the session has none of its own."""
        self._use_connection = use_connection
        self._lock_timeout = lock_timeout
        self._applied = ""
        self.setting = setting
        self.raw: RawConnection | None = None

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> PostgresRows:
        raw = self.raw
        if raw is None:
            return self._begin(statement, values)
        if self._applied == self.setting:
            return PostgresRows(execute(raw, statement, values))
        with raw.pipeline():
            execute(raw, _SET, [self.setting])
            cursor = execute(raw, statement, values)
        self._applied = self.setting
        return PostgresRows(cursor)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        for row in rows:
            self.execute(statement, row)

    def _begin(self, statement: str, values: Sequence[Any]) -> PostgresRows:
        """Begin on a new connection; nothing was read before, so another one may replace a connection that is lost."""
        found: list[PostgresRows] = []

        def begin(raw: RawConnection) -> RawConnection:
            with raw.pipeline():
                raw.execute(_BEGIN)
                if self._lock_timeout:
                    execute(raw, _SET_WITH_TIMEOUT, [self.setting, self._lock_timeout])
                else:
                    execute(raw, _SET, [self.setting])
                cursor = execute(raw, statement, values)
            found.append(PostgresRows(cursor))
            return raw

        self.raw = self._use_connection(begin)
        self._applied = self.setting
        return found[-1]
