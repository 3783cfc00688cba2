"""What the outbox stores besides jobs: positions in the record, the last delivery, and pauses of each provider."""

import json

from memoranda.storage.connection import Connection
from memoranda.storage.position import Position


class OutboxState:
    """Reads and writes this state in a transaction of the outbox; all components of a server share `state_meta`."""

    def __init__(self, *, on_server: bool) -> None:
        self._on_server = on_server
        self._prefix = "outbox:" if on_server else ""

    def last_delivered(self, connection: Connection, provider: str) -> float:
        """The timestamp of the last delivery to a provider; 0 when there was none."""
        found = self._read(connection, f"last_delivered:{provider}")
        return float(found) if found else 0.0

    def note_delivery(self, connection: Connection, provider: str, timestamp: float) -> None:
        self._write(connection, f"last_delivered:{provider}", str(timestamp))

    def pause_deliveries(self, connection: Connection, provider: str, now: float, until: float) -> None:
        """Make every process wait before it delivers anything to a provider, because its service asked for it."""
        self._write(connection, f"paused:{provider}", json.dumps([now, until]))

    def paused_until(self, connection: Connection, provider: str, now: float) -> float:
        """When deliveries to a provider may continue; 0 when they are not paused, or the clock was set back since."""
        found = self._read(connection, f"paused:{provider}")
        try:
            since, until = json.loads(found) if found else (0.0, 0.0)
            return float(until) if since <= now else 0.0
        except (ValueError, TypeError):
            return 0.0

    def resume_deliveries(self, connection: Connection, provider: str) -> None:
        connection.execute("DELETE FROM state_meta WHERE key = ?", (f"{self._prefix}paused:{provider}",))

    def read_position(self, connection: Connection, provider: str, scope: str) -> Position | None:
        """How far the record has been read for a provider; None when it never was."""
        if not self._on_server:
            found = self._read(connection, position_key(provider, scope))
            return Position.parse(found) if found else None
        row = connection.execute(
            "SELECT position FROM outbox_positions WHERE provider = ? AND user_id = ?", (provider, scope)
        ).fetchone()
        return Position.parse(row[0]) if row else None

    def write_position(self, connection: Connection, provider: str, scope: str, position: Position) -> None:
        if not self._on_server:
            self._write(connection, position_key(provider, scope), str(position))
            return
        connection.execute(
            "INSERT INTO outbox_positions (provider, user_id, position) VALUES (?, ?, ?)"
            " ON CONFLICT (provider, user_id) DO UPDATE SET position = excluded.position",
            (provider, scope, str(position)),
        )

    def _read(self, connection: Connection, key: str) -> str | None:
        row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (self._prefix + key,)).fetchone()
        return row[0] if row else None

    def _write(self, connection: Connection, key: str, value: str) -> None:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (self._prefix + key, value),
        )


def read_positions(connection: Connection) -> list[tuple[str, str, Position]]:
    """The positions in a file, each with its provider and scope."""
    rows = connection.execute("SELECT key, value FROM state_meta WHERE key LIKE 'place:%' ORDER BY key").fetchall()
    return [(*json.loads(key.removeprefix("place:")), Position.parse(value)) for key, value in rows]


def position_key(provider: str, scope: str) -> str:
    """The key of a position in a file."""
    return f"place:{json.dumps([provider, scope])}"
