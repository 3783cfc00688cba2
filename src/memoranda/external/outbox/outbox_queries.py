"""The statements of the outbox, for SQLite and PostgreSQL."""

from collections.abc import Collection, Iterator
from typing import Any

from memoranda.external.outbox.job_payload import IDENTITY_COLUMNS
from memoranda.storage.engine import Engine

# The first job of every session, found from session to session: as fast with many waiting jobs as with few.
WAITING = "FROM jobs WHERE provider = ? AND scope = ? AND state = 'waiting'"
HEADS = f"""id IN (
    WITH RECURSIVE sessions (name) AS (
        SELECT min(session_id) {WAITING}
        UNION ALL
        SELECT (SELECT min(session_id) {WAITING} AND session_id > sessions.name) FROM sessions WHERE name IS NOT NULL
    )
    SELECT (SELECT min(id) {WAITING} AND session_id = sessions.name) FROM sessions
)"""
# Due, and not leased by another process. Timestamps too far ahead were written before the clock was set back.
FREE = """(next_try <= ? OR next_try > ?)
    AND (owner = ? OR until IS NULL OR until <= ? OR until > ?)"""
# A job with an error was attempted, even if `retry_parked` counts its attempts from zero.
ATTEMPTS = "CASE WHEN attempts = 0 AND last_error <> '' THEN 1 ELSE attempts END"
FIELDS = f"id, payload, {ATTEMPTS}, {IDENTITY_COLUMNS}, owner, until"
INSERT = """INSERT INTO jobs (key, provider, scope, kind, session_id, payload, created, owner, until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""
PARK = "UPDATE jobs SET state = 'parked', attempts = attempts + 1, last_error = ? WHERE id = ?"
# SQLite accepts no more than 32,766 values in a statement.
_MAX_IDS = 10_000


def head_values(provider: str, scope: str) -> tuple[str, ...]:
    """The values of `HEADS`."""
    return (provider, scope) * HEADS.count(WAITING)


def conditions(
    engine: Engine, provider: str | None, scope: str | None, session_ids: Collection[str] | None = None
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Conditions that together match these jobs, each of them once; None stands for all."""
    filters = [(name, value) for name, value in (("provider", provider), ("scope", scope)) if value is not None]
    condition = " AND ".join(["1 = 1", *(f"{name} = ?" for name, _ in filters)])
    values = tuple(value for _, value in filters)
    if session_ids is None:
        yield condition, values
        return
    names = sorted(set(session_ids))
    for start in range(0, len(names), _MAX_IDS):
        among, ids = engine.dialect.one_of("session_id", names[start : start + _MAX_IDS])
        yield f"{condition} AND {among}", (*values, *ids)
