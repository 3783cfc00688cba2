"""The daily budget for background work, which all processes of a home share and exceed by at most one call.

Before a call starts, its row reserves the most that it can use. If no other call is running, it may start while
anything is left. While others run, it may start only if the reservations of all of them fit. So only one call can
exceed the limit: one that started while no other was running. A call whose process died counts with its estimate after
its deadline.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memoranda.errors import BudgetSpentError, StorageError
from memoranda.models.spending.call_record import RUNNING, UPSERT, CallRecord
from memoranda.models.spending.settings import BudgetSettings
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine

_POLL_SECONDS = 0.05
_LOCK = "usage:budget"
_SPENT = f"""SELECT
    COALESCE(sum(input_tokens + output_tokens) FILTER (WHERE NOT running), 0),
    COALESCE(sum(cost_usd) FILTER (WHERE NOT running), 0.0),
    count(*) FILTER (WHERE running),
    COALESCE(sum(most_tokens) FILTER (WHERE running), 0),
    COALESCE(sum(most_usd) FILTER (WHERE running), 0.0)
    FROM (
        SELECT *, outcome = '{RUNNING}' AND until > ? AS running FROM calls WHERE background = 1 AND at >= ?
    ) AS today"""


@dataclass(frozen=True, slots=True)
class BackgroundSpending:
    """What background work used today, and what the running calls have reserved."""

    tokens: int = 0
    usd: float = 0.0
    running: int = 0
    reserved_tokens: int = 0
    reserved_usd: float = 0.0

    def is_over(self, settings: BudgetSettings) -> bool:
        """Whether the budget is used up."""
        return _reaches(self.usd, settings.daily_usd) or _reaches(self.tokens, settings.daily_tokens)

    def has_room_for(self, call: CallRecord, settings: BudgetSettings) -> bool:
        """Whether a call may start now, given the running ones."""
        if not self.running:
            return True
        dollars = self.usd + self.reserved_usd + call.most_usd
        tokens = self.tokens + self.reserved_tokens + call.most_tokens
        return _within(dollars, settings.daily_usd) and _within(tokens, settings.daily_tokens)


class Budget:
    """Decides whether a background call may start."""

    def __init__(self, database: Callable[[], Engine], settings: BudgetSettings, clock: Callable[[], float]) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock

    def reserve(self, call: CallRecord, timeout: float) -> None:
        """Records a call before it starts, or raises BudgetSpentError.

        Waits for running calls for at most `timeout` seconds. Without a ledger no call may start, because the total of
        the day would be unknown.
        """
        if self._settings.allows_nothing:
            raise BudgetSpentError("Background work is switched off: its daily budget is 0.")
        deadline = time.monotonic() + timeout
        while not self._try_reserve(call):
            if time.monotonic() >= deadline:
                raise BudgetSpentError("Another running background call may use up what is left for today.")
            time.sleep(_POLL_SECONDS)

    def _try_reserve(self, call: CallRecord) -> bool:
        try:
            database = self._database()
            with database.writing() as connection:
                database.lock_session(connection, _LOCK)
                spending = background_spending(connection, self._clock())
                if spending.is_over(self._settings):
                    raise BudgetSpentError(_budget_message(spending, self._settings))
                if not spending.has_room_for(call, self._settings):
                    return False
                connection.execute(UPSERT, call.values())
        except StorageError as error:
            raise BudgetSpentError(f"The cost of today's background work is unknown: {error}") from error
        return True


def background_spending(connection: Connection, now: float) -> BackgroundSpending:
    """What background work has used since midnight."""
    row = connection.execute(_SPENT, (now, midnight(now))).fetchone()
    return BackgroundSpending(int(row[0]), float(row[1]), int(row[2]), int(row[3]), float(row[4]))


def midnight(now: float) -> float:
    """The start of the local day of a timestamp."""
    return datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _reaches(amount: float, limit: float | None) -> bool:
    return limit is not None and amount >= limit


def _within(amount: float, limit: float | None) -> bool:
    return limit is None or amount <= limit


def _budget_message(spending: BackgroundSpending, settings: BudgetSettings) -> str:
    dollars = "" if settings.daily_usd is None else f"${spending.usd:.4f} of ${settings.daily_usd:.2f}"
    tokens = "" if settings.daily_tokens is None else f"{spending.tokens:,} of {settings.daily_tokens:,} tokens"
    used = " and ".join(filter(None, (dollars, tokens)))
    return f"Today's budget for background work is spent ({used}). It starts again tomorrow."
