"""The daily budget for background work: held to across processes, and never exceeded by more than one call.

Before a call its row is written with the most that it can use. A call that is alone may begin while anything is left.
While others are under way it may only begin when even the most of all of them fits, so the one call that goes over the
limit is the last one that began, and it was alone. A call whose process died counts with its estimate once its
time is over.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memoranda.db.sqlite import Connection, Database
from memoranda.errors import BudgetSpentError, StorageError
from memoranda.spending.call_record import RUNNING, STORE, CallRecord
from memoranda.spending.settings import BudgetSettings

_LOOK_EVERY = 0.05
_SPENT = f"""SELECT
    COALESCE(sum(input_tokens + output_tokens) FILTER (WHERE NOT flying), 0),
    COALESCE(sum(cost_usd) FILTER (WHERE NOT flying), 0.0),
    count(*) FILTER (WHERE flying),
    COALESCE(sum(most_tokens) FILTER (WHERE flying), 0),
    COALESCE(sum(most_usd) FILTER (WHERE flying), 0.0)
    FROM (
        SELECT *, outcome = '{RUNNING}' AND until > :now AS flying FROM calls WHERE background = 1 AND at >= :midnight
    )"""


@dataclass(frozen=True, slots=True)
class BackgroundSpending:
    """What background work used today, and the most that calls under way can still use."""

    tokens: int = 0
    usd: float = 0.0
    under_way: int = 0
    most_tokens: int = 0
    most_usd: float = 0.0

    def is_over(self, settings: BudgetSettings) -> bool:
        """Whether nothing is left."""
        return _reaches(self.usd, settings.daily_usd) or _reaches(self.tokens, settings.daily_tokens)

    def has_room_for(self, call: CallRecord, settings: BudgetSettings) -> bool:
        """Whether a call may begin now, considering those under way."""
        if not self.under_way:
            return True
        dollars = self.usd + self.most_usd + call.most_usd
        tokens = self.tokens + self.most_tokens + call.most_tokens
        return _within(dollars, settings.daily_usd) and _within(tokens, settings.daily_tokens)


class Budget:
    """Lets background calls begin, or not."""

    def __init__(self, database: Callable[[], Database], settings: BudgetSettings, clock: Callable[[], float]) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock

    def reserve(self, call: CallRecord, patience: float) -> None:
        """Write a call down before it is made, or raise BudgetSpentError.

        Waits for other calls under way, at most `patience` seconds. Without a ledger nothing may begin, since nobody
        would know what it adds up to.
        """
        if self._settings.allows_nothing:
            raise BudgetSpentError("Background work is switched off: its daily budget is 0.")
        deadline = time.monotonic() + patience
        while not self._try(call):
            if time.monotonic() >= deadline:
                raise BudgetSpentError("Another background call is under way that may use up what is left for today.")
            time.sleep(_LOOK_EVERY)

    def _try(self, call: CallRecord) -> bool:
        try:
            with self._database().writing() as connection:
                found = background_spending(connection, self._clock())
                if found.is_over(self._settings):
                    raise BudgetSpentError(_in_words(found, self._settings))
                if not found.has_room_for(call, self._settings):
                    return False
                connection.execute(STORE, call.values())
        except StorageError as error:
            raise BudgetSpentError(f"What background work has cost today is not known: {error}") from error
        return True


def background_spending(connection: Connection, now: float) -> BackgroundSpending:
    """What background work used since midnight."""
    row = connection.execute(_SPENT, {"now": now, "midnight": midnight(now)}).fetchone()
    return BackgroundSpending(int(row[0]), float(row[1]), int(row[2]), int(row[3]), float(row[4]))


def midnight(now: float) -> float:
    """When the day began that a moment belongs to, by the local calendar."""
    return datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _reaches(amount: float, limit: float | None) -> bool:
    return limit is not None and amount >= limit


def _within(amount: float, limit: float | None) -> bool:
    return limit is None or amount <= limit


def _in_words(found: BackgroundSpending, settings: BudgetSettings) -> str:
    dollars = "" if settings.daily_usd is None else f"${found.usd:.4f} of ${settings.daily_usd:.2f}"
    tokens = "" if settings.daily_tokens is None else f"{found.tokens:,} of {settings.daily_tokens:,} tokens"
    used = " and ".join(filter(None, (dollars, tokens)))
    return f"Today's budget for background work is spent ({used}). It is there again tomorrow."
