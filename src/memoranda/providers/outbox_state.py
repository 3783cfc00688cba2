"""What the outbox stores besides jobs: positions in the record, the last delivery, and pauses of each provider."""

import json

from memoranda.db.position import Position
from memoranda.db.sqlite import Connection


def last_delivered(connection: Connection, provider: str) -> float:
    """The timestamp of the last delivery to a provider; 0 when there was none."""
    found = _read_value(connection, f"last_delivered:{provider}")
    return float(found) if found else 0.0


def note_delivery(connection: Connection, provider: str, timestamp: float) -> None:
    _write_value(connection, f"last_delivered:{provider}", str(timestamp))


def pause_deliveries(connection: Connection, provider: str, now: float, until: float) -> None:
    """Make every process wait before it delivers anything to a provider, because its service asked for it."""
    _write_value(connection, f"paused:{provider}", json.dumps([now, until]))


def paused_until(connection: Connection, provider: str, now: float) -> float:
    """When deliveries to a provider may continue; 0 when they are not paused, or the clock was set back since."""
    found = _read_value(connection, f"paused:{provider}")
    try:
        since, until = json.loads(found) if found else (0.0, 0.0)
        return float(until) if since <= now else 0.0
    except (ValueError, TypeError):
        return 0.0


def resume_deliveries(connection: Connection, provider: str) -> None:
    connection.execute("DELETE FROM state_meta WHERE key = ?", (f"paused:{provider}",))


def read_position(connection: Connection, provider: str, scope: str) -> Position | None:
    """How far the record has been read for a provider; None when it never was."""
    found = _read_value(connection, _position_key(provider, scope))
    return Position.parse(found) if found else None


def write_position(connection: Connection, provider: str, scope: str, position: Position) -> None:
    _write_value(connection, _position_key(provider, scope), str(position))


def _position_key(provider: str, scope: str) -> str:
    return f"place:{json.dumps([provider, scope])}"


def _read_value(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def _write_value(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
