"""The statements of the outbox, for SQLite and PostgreSQL."""

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
FIELDS = f"id, provider, key, kind, session_id, payload, created, {ATTEMPTS}, owner, until"
INSERT = """INSERT INTO jobs (key, provider, scope, kind, session_id, payload, created, owner, until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""


def head_values(provider: str, scope: str) -> tuple[str, ...]:
    """The values of `HEADS`."""
    return (provider, scope) * HEADS.count(WAITING)
