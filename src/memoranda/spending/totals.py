"""Sums of the spend ledger by day, model, purpose or session."""

from dataclasses import dataclass
from typing import Literal

from memoranda.db.sqlite import Connection
from memoranda.spending.call_record import OK, RUNNING

Grouping = Literal["day", "model", "purpose", "session"]

_NAMES: dict[Grouping, str] = {
    "day": "date(at, 'unixepoch', 'localtime')",
    "model": "model",
    "purpose": "purpose",
    "session": "session_id",
}
_ORDER: dict[Grouping, str] = {
    "day": "1",
    "model": "total(cost_usd) DESC, sum(input_tokens) DESC, 1",
    "purpose": "total(cost_usd) DESC, sum(input_tokens) DESC, 1",
    "session": "max(at) DESC",
}
_SUMS = f"""count(*), count(*) FILTER (WHERE outcome NOT IN ('{OK}', '{RUNNING}')), COALESCE(sum(input_tokens), 0),
    COALESCE(sum(output_tokens), 0), COALESCE(sum(cache_read_tokens), 0), COALESCE(sum(cache_write_tokens), 0),
    COALESCE(sum(reasoning_tokens), 0), total(cost_usd), count(*) FILTER (WHERE cost_usd IS NULL)"""


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


def sum_by_group(connection: Connection, by: Grouping, since: float, until: float, user: str | None) -> list[Total]:
    """The sums of the calls between two timestamps by group; days in order, other groups by cost."""
    condition, values = _condition(since, until, user)
    rows = connection.execute(
        f"SELECT {_NAMES[by]}, {_SUMS} FROM calls WHERE {condition} GROUP BY 1 ORDER BY {_ORDER[by]}", values
    )
    return [Total(str(row[0]), *row[1:]) for row in rows]


def sum_calls(connection: Connection, since: float, until: float, user: str | None) -> Total:
    """The sum of all calls between two timestamps."""
    condition, values = _condition(since, until, user)
    row = connection.execute(f"SELECT {_SUMS} FROM calls WHERE {condition}", values).fetchone()
    return Total("", *row)


def _condition(since: float, until: float, user: str | None) -> tuple[str, tuple[object, ...]]:
    if user is None:
        return "at >= ? AND at <= ?", (since, until)
    return "at >= ? AND at <= ? AND user_id = ?", (since, until, user)
