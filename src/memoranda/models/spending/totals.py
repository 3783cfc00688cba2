"""Sums of the spend ledger by day, model, purpose or session."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

from memoranda.models.spending.call_record import OK, RUNNING
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Dialect

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
