"""What the outbox knows beside its jobs: how far the record was looked through, and when something last got through."""

import json

from memoranda.db.position import Position
from memoranda.db.sqlite import Connection


def last_delivered(connection: Connection, provider: str) -> float:
    """When something last reached a provider, in seconds since 1970."""
    found = _fact(connection, f"last_delivered:{provider}")
    return float(found) if found else 0.0


def note_delivery(connection: Connection, provider: str, moment: float) -> None:
    _keep_fact(connection, f"last_delivered:{provider}", str(moment))


def pause_deliveries(connection: Connection, provider: str, now: float, until: float) -> None:
    """Let every process wait before it delivers anything to a provider, as its service asked."""
    _keep_fact(connection, f"paused:{provider}", json.dumps([now, until]))


def paused_until(connection: Connection, provider: str, now: float) -> float:
    """When deliveries to a provider may continue; 0 when they are not paused, or the clock was set back since."""
    found = _fact(connection, f"paused:{provider}")
    since, until = json.loads(found) if found else (0.0, 0.0)
    return float(until) if since <= now else 0.0


def resume_deliveries(connection: Connection, provider: str) -> None:
    connection.execute("DELETE FROM state_meta WHERE key = ?", (f"paused:{provider}",))


def place(connection: Connection, provider: str, scope: str) -> Position | None:
    """The last message of the record that was looked at for a provider; None when none was."""
    found = _fact(connection, _place_of(provider, scope))
    return Position.parse(found) if found else None


def write_position(connection: Connection, provider: str, scope: str, to: Position) -> None:
    _keep_fact(connection, _place_of(provider, scope), str(to))


def _place_of(provider: str, scope: str) -> str:
    return f"place:{json.dumps([provider, scope])}"


def _fact(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def _keep_fact(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
