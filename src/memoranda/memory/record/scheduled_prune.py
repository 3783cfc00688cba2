"""Prunes old sessions at intervals, in steps that leave room for other writers."""

import time
from collections.abc import Callable
from typing import Any

from memoranda.memory.record.deletion import Deletion
from memoranda.memory.record.items import Items
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart
from memoranda.safety.redaction import Redactor
from memoranda.storage.engine import Engine

_LAST_PRUNE = "last_auto_prune"


class ScheduledPrune(StorePart):
    """Deletes old sessions and expired items when it is time to."""

    def __init__(
        self, engine: Engine, scope: Scope, redactor: Redactor | None, deletion: Deletion, items: Items
    ) -> None:
        super().__init__(engine, scope, redactor)
        self._deletion = deletion
        self._items = items

    def last_prune(self) -> float | None:
        """When sessions were last pruned at an interval, in seconds since 1970; None if never."""
        with self._engine.reading() as connection:
            return _read_time(connection)

    def prune_when_due(
        self,
        /,
        older_than_days: float,
        *,
        interval_hours: float = 24,
        vacuum: bool = True,
        stopped: Callable[[], bool] = lambda: False,
        **filters: Any,
    ) -> int | None:
        """Prune if the last time is long enough ago, and return how many sessions were deleted; None if it is not due.

        The store remembers the time, so that several processes together prune once per interval. Archived sessions
        stay, unless `archived` says otherwise; `filters` are the fields of `SessionFilter`. A few sessions are deleted
        at a time, so that other writers never wait long, and `stopped` is asked in between. A prune that is stopped or
        fails stays due. If something was deleted, the file shrinks afterwards as `release_space` says.
        """
        now = time.time()
        claimed, last = self._claim(now, interval_hours)
        if not claimed:
            return None
        was_stopped = False

        def ask() -> bool:
            nonlocal was_stopped
            was_stopped = was_stopped or stopped()
            return was_stopped

        completed = False
        try:
            chosen = {"archived": False, **filters}
            self._items.remove_expired()
            count = self._deletion.prune_sessions(older_than_days, stopped=ask, **chosen)
            completed = not was_stopped
        finally:
            if not completed:
                self._release(now, last)
        if count and vacuum and not ask():
            self._deletion.release_space(ask)
        return count

    def _claim(self, now: float, interval_hours: float) -> tuple[bool, float | None]:
        """Set the time of the last prune to now unless that was recent; returns whether it did, and the time before."""
        with self._engine.writing() as connection:
            last = _read_time(connection)
            # A time in the future is from a clock that was wrong.
            if last is not None and 0 <= now - last < interval_hours * 3600:
                return False, last
            connection.execute(
                "INSERT INTO state_meta (key, value) VALUES (?, ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (_LAST_PRUNE, repr(now)),
            )
            return True, last

    def _release(self, claimed: float, last: float | None) -> None:
        """Set the time back to the one before, so that the next process continues; unless another has claimed it."""
        with self._engine.writing() as connection:
            if last is None:
                connection.execute("DELETE FROM state_meta WHERE key = ? AND value = ?", (_LAST_PRUNE, repr(claimed)))
            else:
                connection.execute(
                    "UPDATE state_meta SET value = ? WHERE key = ? AND value = ?",
                    (repr(last), _LAST_PRUNE, repr(claimed)),
                )


def _read_time(connection: Any) -> float | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (_LAST_PRUNE,)).fetchone()
    try:
        return None if row is None else float(row[0])
    except ValueError:
        # Another program may have stored something else.
        return None
