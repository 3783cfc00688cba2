"""Keeps a session's counters in step with its messages."""

from typing import Any

from memoranda.db.connection import Connection
from memoranda.sessions.message_rows import decode_json
from memoranda.sessions.schema import hour_of

COUNTED = "(active = 1 OR compacted = 1) AND copy_of IS NULL AND is_summary IS NULL"
"""A condition on messages: those that count, which is every message once, without rewound ones."""


def delete_messages(connection: Connection, session_id: str) -> int:
    """Delete every message of a session and return how many there were."""
    connection.execute(
        "INSERT INTO state_meta (key, value) SELECT 'last_deleted_message', CAST(max(id) AS TEXT) FROM messages"
        " WHERE id IS NOT NULL HAVING max(id) IS NOT NULL ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        " WHERE CAST(state_meta.value AS INTEGER) < CAST(excluded.value AS INTEGER)"
    )
    return connection.execute("DELETE FROM messages WHERE session_id = ?", (session_id,)).rowcount


def recount(connection: Connection, session_id: str) -> None:
    """Set a session's counters and last activity from its messages."""
    found = connection.execute(
        "SELECT count(m.id), COALESCE(max(m.timestamp), sessions.started_at) FROM sessions"
        f" LEFT JOIN messages m ON m.session_id = sessions.id AND {COUNTED} WHERE sessions.id = ? GROUP BY sessions.id",
        (session_id,),
    ).fetchone()
    if found is None:
        return
    count, latest = found
    rows = connection.execute(
        f"SELECT tool_calls FROM messages WHERE session_id = ? AND tool_calls IS NOT NULL AND {COUNTED}", (session_id,)
    )
    calls = sum(count_tool_calls(stored) for (stored,) in rows)
    connection.execute(
        "UPDATE sessions SET message_count = ?, tool_call_count = ?, last_active = ?, active_hour = ? WHERE id = ?",
        (count, calls, latest, hour_of(latest), session_id),
    )


def count_tool_calls(calls: Any) -> int:
    """How many tools a message calls, by its field or the JSON of it."""
    calls = decode_json(calls) if isinstance(calls, str) else calls
    return len(calls) if isinstance(calls, (list, tuple)) else 1
