"""Waits until followers can read what was committed before: a transaction in progress holds back all later ones.

Transactions of the store take milliseconds, so that waiting for those in progress gives every search what was committed
before it. A transaction that takes longer, perhaps of another program on the same server, is waited for once.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from memoranda.storage.engine import FeedTable
from memoranda.storage.position import START, Position
from memoranda.storage.postgres import row_security
from memoranda.storage.postgres.dialect import TRANSACTION

MAX_WAIT = 0.5
_FIRST_PAUSE, _MAX_PAUSE = 0.001, 0.02
_HORIZON = "pg_snapshot_xmin(pg_current_snapshot())"
# The setting that row-level security asks for, before any row is read: rows are looked up by the result.
_VISIBLE = f"(SELECT CASE WHEN {row_security.SET_EVERYONE} <> '' THEN {_HORIZON} END)"
_NEWEST = f"(SELECT {TRANSACTION} FROM {{0}} WHERE {TRANSACTION} >= {_VISIBLE} ORDER BY {TRANSACTION} DESC LIMIT 1)"

_LAST = (
    f"(SELECT ARRAY[{TRANSACTION}::text::bigint, {{1}}] FROM {{0}} WHERE {TRANSACTION} < {_VISIBLE}"
    f" AND {{2}} ORDER BY {TRANSACTION} DESC, {{1}} DESC LIMIT 1)"
)

Ask = Callable[[str, list[Any]], Any]


class Horizon:
    """The feed tables of one engine, and the oldest transaction in progress that took too long last time."""

    def __init__(self, feeds: Iterable[str]) -> None:
        newest = ", ".join(_NEWEST.format(table) for table in feeds)
        self._ask_newest = f"SELECT GREATEST({newest})::text, {_HORIZON}::text"
        self._slow = ""

    def wait(self, ask: Ask, max_wait: float = MAX_WAIT) -> bool:
        """Wait until everything committed before the call is below the horizon; False if that takes too long.

        `ask` executes one statement outside a transaction and returns its first row.
        """
        newest, oldest = ask(self._ask_newest, [])
        return newest is None or self._wait(newest, oldest, ask, max_wait)

    def heads(self, feeds: Sequence[FeedTable], ask: Ask) -> list[Position]:
        """The last positions below the horizon, after waiting; mostly nothing is in progress, and one trip is enough.

        They concern the rows of all users, unless the condition of a feed says otherwise.
        """
        if not feeds:
            self.wait(ask)
            return []
        last = ", ".join(_LAST.format(feed.name, feed.column, feed.condition.text) for feed in feeds)
        values = [value for feed in feeds for value in feed.condition.values]
        newest, oldest, *found = ask(f"{self._ask_newest}, {last}", values)
        if newest is not None:
            self._wait(newest, oldest, ask, MAX_WAIT)
            found = ask(f"SELECT {last}", values)
        return [START if position is None else Position(*position) for position in found]

    def _wait(self, newest: str, oldest: str, ask: Ask, max_wait: float) -> bool:
        if oldest == self._slow:
            return False
        deadline, pause = time.monotonic() + max_wait, _FIRST_PAUSE
        while True:
            time.sleep(pause)
            passed, oldest = ask(f"SELECT {_HORIZON} > ?::text::xid8, {_HORIZON}::text", [newest])
            if passed:
                return True
            if time.monotonic() >= deadline:
                self._slow = oldest
                return False
            pause = min(pause * 2, _MAX_PAUSE)
