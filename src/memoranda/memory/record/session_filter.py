"""Which sessions to list, archive or prune: by title, model, provider, dates, sizes, costs and the archive flag."""

from dataclasses import dataclass, fields
from typing import Any

from memoranda.errors import SessionError
from memoranda.storage.engine import Condition, Dialect

_TOKENS = "(sessions.input_tokens + sessions.output_tokens)"
_COST = "COALESCE(sessions.actual_cost_usd, sessions.estimated_cost_usd, 0)"
# The texts are found anywhere in the column, ignoring the case of ASCII letters.
_CONTAINED = {"title": "title", "model": "model", "provider": "billing_provider"}
_BOUNDS = {
    "started_after": "{started_at} >= ?",
    "started_before": "{started_at} <= ?",
    "min_messages": "sessions.own_message_count >= ?",
    "max_messages": "sessions.own_message_count <= ?",
    "min_tool_calls": "sessions.tool_call_count >= ?",
    "max_tool_calls": "sessions.tool_call_count <= ?",
    "min_tokens": f"{_TOKENS} >= ?",
    "max_tokens": f"{_TOKENS} <= ?",
    "min_cost": f"{_COST} >= ?",
    "max_cost": f"{_COST} <= ?",
}


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Conditions that a session must all meet; a field that is None is no condition.

    Tokens are those sent and received, costs are in US dollars, timestamps are seconds since 1970.
    """

    title: str | None = None
    model: str | None = None
    provider: str | None = None
    end_reason: str | None = None
    started_after: float | None = None
    started_before: float | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    min_tool_calls: int | None = None
    max_tool_calls: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    min_cost: float | None = None
    max_cost: float | None = None
    archived: bool | None = None

    @classmethod
    def of(cls, filters: dict[str, Any]) -> "SessionFilter":
        """The filter with these fields; raises SessionError for one that does not exist or has the wrong type."""
        known = [field.name for field in fields(cls)]
        for name, value in filters.items():
            if name not in known:
                raise SessionError(f"Sessions cannot be filtered by {name!r}. There are: {', '.join(known)}.")
            wanted = bool if name == "archived" else int | float if name in _BOUNDS else str
            if value is not None and (not isinstance(value, wanted) or (name in _BOUNDS and isinstance(value, bool))):
                kind = "true or false" if name == "archived" else "a number" if name in _BOUNDS else "text"
                raise SessionError(f"{name} must be {kind}, not {value!r}.")
        return cls(**filters)

    def condition(self, dialect: Dialect) -> Condition:
        """The filter as a condition on the table `sessions`."""
        parts, values = ["1 = 1"], list[Any]()
        for name, column in _CONTAINED.items():
            if (text := getattr(self, name)) is not None:
                escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
                parts.append(dialect.like(f"sessions.{column}"))
                values.append(f"%{escaped}%")
        for name, bound in _BOUNDS.items():
            if (value := getattr(self, name)) is not None:
                # Which index is used depends on the order of the list; most sessions meet a bound like this.
                parts.append(bound.format(started_at=dialect.unindexed("sessions.started_at")))
                values.append(value)
        if self.end_reason is not None:
            parts.append("sessions.end_reason = ?")
            values.append(self.end_reason)
        if self.archived is not None:
            parts.append("sessions.archived = ?")
            values.append(int(self.archived))
        return Condition(" AND ".join(parts), tuple(values))
