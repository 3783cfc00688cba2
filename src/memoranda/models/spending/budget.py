"""Sums of the spend ledger, and the daily budget for background work, which all processes of a home share.

The processes exceed the budget by at most one call. Before a call starts, its row reserves the most that it can use. If
no other call is running, it may start while anything is left. While others run, it may start only if the reservations
of all of them fit. So only one call can exceed the limit: one that started while no other was running. A call whose
process died counts with its estimate after its deadline.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Literal

from memoranda.errors import BudgetSpentError, StorageError
from memoranda.models.spending.call_record import OK, RUNNING, UPSERT, CallRecord
from memoranda.models.spending.settings import BudgetSettings
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Dialect, Engine
from memoranda.support.lazy_dataclass import dataclass

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


Grouping = Literal["day", "model", "purpose", "session"]

# The difference of every time zone from UTC is a multiple of it, so that no interval belongs to two days.
_QUARTER_HOUR = 900
_BY_COST = "COALESCE(sum(cost_usd), 0.0) DESC, sum(input_tokens) DESC, 1"
_NAMES: dict[Grouping, str] = {"model": "model", "purpose": "purpose", "session": "session_id"}
_ORDER: dict[Grouping, str] = {"model": _BY_COST, "purpose": _BY_COST, "session": "max(at) DESC"}
_SUMS = f"""count(*), count(*) FILTER (WHERE outcome NOT IN ('{OK}', '{RUNNING}')), COALESCE(sum(input_tokens), 0),
    COALESCE(sum(output_tokens), 0), COALESCE(sum(cache_read_tokens), 0), COALESCE(sum(cache_write_tokens), 0),
    COALESCE(sum(reasoning_tokens), 0), COALESCE(sum(cost_usd), 0.0), count(*) FILTER (WHERE cost_usd IS NULL)"""


@dataclass(frozen=True, slots=True)
class Total:
    """A sum of calls. `cost_usd` excludes the `unpriced` calls, which have no known price."""

    name: str
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    @property
    def cached(self) -> float:
        """The share of the input that came from a cache."""
        return self.cache_read_tokens / self.input_tokens if self.input_tokens else 0.0


_FIELDS = tuple(field.name for field in fields(Total))[1:]


def sum_by_group(
    connection: Connection, dialect: Dialect, by: Grouping, since: float, until: float, user: str | None
) -> list[Total]:
    """The sums of the calls between two timestamps by group; days in order, other groups by cost."""
    condition, values = _condition(since, until, user)
    if by == "day":
        quarter = dialect.rounded_down(f"at / {_QUARTER_HOUR}")
        rows = connection.execute(
            f"SELECT {quarter}, {_SUMS} FROM calls WHERE {condition} GROUP BY 1 ORDER BY 1", values
        )
        days: dict[str, Total] = {}
        for number, *sums in rows:
            day = datetime.fromtimestamp(number * _QUARTER_HOUR).date().isoformat()
            days[day] = _add(days[day], sums) if day in days else _total(day, sums)
        return list(days.values())
    rows = connection.execute(
        f"SELECT {_NAMES[by]}, {_SUMS} FROM calls WHERE {condition} GROUP BY 1 ORDER BY {_ORDER[by]}", values
    )
    return [_total(str(name), sums) for name, *sums in rows]


def sum_calls(connection: Connection, since: float, until: float, user: str | None) -> Total:
    """The sum of all calls between two timestamps."""
    condition, values = _condition(since, until, user)
    return _total("", connection.execute(f"SELECT {_SUMS} FROM calls WHERE {condition}", values).fetchone())


def _total(name: str, sums: Sequence[Any]) -> Total:
    # A server returns sums as decimal numbers.
    values: list[Any] = [value if isinstance(value, float) else int(value) for value in sums]
    return Total(name, *values)


def _add(total: Total, sums: Sequence[Any]) -> Total:
    other = _total(total.name, sums)
    return Total(total.name, *(getattr(total, name) + getattr(other, name) for name in _FIELDS))


def _condition(since: float, until: float, user: str | None) -> tuple[str, tuple[object, ...]]:
    if user is None:
        return "at >= ? AND at <= ?", (since, until)
    return "at >= ? AND at <= ? AND user_id = ?", (since, until, user)
