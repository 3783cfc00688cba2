"""Counts tokens and costs per session, and computes statistics over all sessions."""

from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.message_rows import require_storable
from memoranda.memory.record.store_part import StorePart, count_redactions

COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
            "api_call_count")  # fmt: skip
COSTS = ("estimated_cost_usd", "actual_cost_usd")
FACTS = ("model", "billing_provider", "billing_base_url", "billing_mode", "cost_status", "cost_source",
         "pricing_version")  # fmt: skip


class SessionUsage(StorePart):
    """Token counts, costs, statistics, and the facts that callers store under a key."""

    def update_token_counts(self, /, session_id: str, *, absolute: bool = False, **amounts: Any) -> None:
        """Add tokens, calls and costs to a session, or set them if `absolute`.

        The model, the billing fields and the facts about the cost replace the old ones unless they are None.
        """
        assignments, values = [], []
        for name, amount in amounts.items():
            if name in (*COUNTERS, *COSTS):
                _check(name, amount)
                assignments.append(f"{name} = ?" if absolute else f"{name} = COALESCE({name}, 0) + ?")
            elif name in FACTS:
                require_storable(name, amount)
                assignments.append(f"{name} = COALESCE(?, {name})")
            else:
                raise SessionError(f"{name} cannot be counted; {', '.join((*COUNTERS, *COSTS, *FACTS))} can.")
            values.append(amount)
        clean, redacted = self._redact(values)
        with self._engine.writing() as connection:
            self._require(connection, session_id)
            count_redactions(connection, redacted)
            if assignments:
                connection.execute(f"UPDATE sessions SET {', '.join(assignments)} WHERE id = ?", (*clean, session_id))

    def statistics(self) -> dict[str, Any]:
        """Totals over all sessions in scope, by source and by model; a store for one named user omits the secrets."""
        totals = ("count(*)", "sum(own_message_count)", "sum(tool_call_count)", *(f"sum({name})" for name in COUNTERS),
                  *(f"sum({name})" for name in COSTS), "min(started_at)", "max(last_active)")  # fmt: skip
        names = ("sessions", "messages", "tool_calls", *COUNTERS, *COSTS, "first", "last")
        with self._engine.reading() as connection:
            row = connection.execute(
                f"SELECT {', '.join(totals)} FROM sessions WHERE {self._in_scope}", self._scope.values
            ).fetchone()
            groups = {
                column: connection.execute(
                    f"SELECT COALESCE({column}, ''), count(*), sum(own_message_count) FROM sessions"
                    f" WHERE {self._in_scope} GROUP BY COALESCE({column}, '') ORDER BY 3 DESC, 1",
                    self._scope.values,
                ).fetchall()
                for column in ("source", "model")
            }
            redacted = connection.execute("SELECT value FROM state_meta WHERE key = 'redacted_secrets'").fetchone()
        secrets = {"redacted_secrets": int(redacted[0]) if redacted else 0} if self._scope.user is None else {}
        numbers = {name: value or 0 for name, value in zip(names, row, strict=True)}
        return (
            numbers
            | {
                "by_source": {
                    name: {"sessions": count, "messages": messages or 0} for name, count, messages in groups["source"]
                },
                "by_model": {
                    name: {"sessions": count, "messages": messages or 0} for name, count, messages in groups["model"]
                },
            }
            | secrets
        )

    def _refuse_user(self) -> None:
        """Raise SessionError in a store that is open for one user: the facts belong to the whole store."""
        if self._scope.user is not None:
            raise SessionError(f"Facts belong to the whole store; this store is open for {self._scope.user!r}.")

    def get_meta(self, key: str) -> str | None:
        """A value that was stored with `set_meta`, or None."""
        self._refuse_user()
        with self._engine.reading() as connection:
            row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def set_meta(self, key: str, value: str) -> None:
        self._refuse_user()
        clean, redacted = self._redact(value)
        with self._engine.writing() as connection:
            count_redactions(connection, redacted)
            connection.execute(
                "INSERT INTO state_meta (key, value) VALUES (?, ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, clean),
            )


def _check(name: str, amount: Any) -> None:
    kind = int if name in COUNTERS else int | float
    if isinstance(amount, bool) or not isinstance(amount, kind) or not abs(amount) < 2**62:
        what = "a whole number" if kind is int else "a number"
        raise SessionError(f"{name} must be {what}, not {str(amount)[:60]}.")
