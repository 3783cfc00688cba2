"""The tables of the outbox, and what it stores in them besides jobs: positions, the last delivery, and pauses."""

import json
from pathlib import Path

from memoranda.external.outbox.marker import OutboxGuard
from memoranda.storage.connection import Connection
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.position import Position
from memoranda.storage.schema import Column, Schema, ServerTables, Table
from memoranda.storage.state_meta import drop_meta, read_meta, write_meta

APPLICATION_ID = int.from_bytes(b"MemO", "big")
FILE_NAME = "outbox.db"

JOBS = Table(
    "jobs",
    "One row per notification that a provider has not received yet.",
    (
        Column("id", "numbered", "", "Order."),
        Column(
            "key",
            "text",
            "NOT NULL UNIQUE",
            "The provider and the idempotency key, which is the same for a repeated delivery.",
        ),
        Column("provider", "text", "NOT NULL", "The provider that receives it."),
        Column("scope", "text", "NOT NULL", "The user that the provider was started for; empty for the home's owner."),
        Column("kind", "text", "NOT NULL", "turn, memory_write, session_end, session_switch, delegation, forget."),
        Column("session_id", "text", "NOT NULL", "The session whose order it follows."),
        Column("payload", "text", "NOT NULL", "Arguments and facts, as JSON."),
        Column("created", "real", "NOT NULL", "Seconds since 1970."),
        Column("attempts", "integer", "NOT NULL DEFAULT 0", "Number of failed deliveries."),
        Column("first_failed", "real", "", "Timestamp of the first failure."),
        Column("next_try", "real", "NOT NULL DEFAULT 0", "Timestamp before which it is not retried."),
        Column("last_error", "text", "NOT NULL DEFAULT ''", "The last error."),
        Column("state", "text", "NOT NULL DEFAULT 'waiting'", "waiting or parked."),
        Column("owner", "text", "", "The process that leases it."),
        Column("until", "real", "", "Timestamp when the lease expires, unless its owner renews it."),
    ),
)
_INDEXES = ("CREATE INDEX IF NOT EXISTS idx_jobs_order ON jobs(provider, scope, state, session_id, id)",)
SCHEMA = Schema(version=1, tables=(JOBS,), indexes=_INDEXES)

_POSITIONS = Table(
    "outbox_positions",
    "On a server: how far the record has been read for each provider and user.",
    (
        Column("id", "numbered", "", "No meaning."),
        Column("provider", "text", "NOT NULL", "The provider."),
        Column("user_id", "text", "NOT NULL", "The user; empty for the home's owner."),
        Column("position", "text", "NOT NULL", "The last message that was read."),
    ),
)
SERVER_SCHEMA = Schema(
    version=1,
    name="outbox",
    tables=(JOBS, _POSITIONS),
    indexes=(
        *_INDEXES,
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_outbox_positions ON outbox_positions(provider, user_id)",
    ),
    server=ServerTables(user_tables=((JOBS.name, "scope"), (_POSITIONS.name, "user_id"))),
)
"""Positions are rows of users there, so that row-level security protects them, and a move takes them along."""


def outbox_database(home: Path, server_url: str = "", *, wait: float = 10.0) -> LazyDatabase:
    """The database of the outbox: a file of the home, or the server of all its nodes."""
    schema, guard = (SERVER_SCHEMA, None) if server_url else (SCHEMA, OutboxGuard(home / FILE_NAME))
    return LazyDatabase(home / FILE_NAME, schema, APPLICATION_ID, server_url=server_url, wait=wait, guard=guard)


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
        drop_meta(connection, f"{self._prefix}paused:{provider}")

    def read_position(self, connection: Connection, provider: str, scope: str) -> Position | None:
        """How far the record has been read for a provider; None when it never was."""
        if not self._on_server:
            found = self._read(connection, _position_key(provider, scope))
            return Position.parse(found) if found else None
        row = connection.execute(
            "SELECT position FROM outbox_positions WHERE provider = ? AND user_id = ?", (provider, scope)
        ).fetchone()
        return Position.parse(row[0]) if row else None

    def write_position(self, connection: Connection, provider: str, scope: str, position: Position) -> None:
        if not self._on_server:
            self._write(connection, _position_key(provider, scope), str(position))
            return
        connection.execute(
            "INSERT INTO outbox_positions (provider, user_id, position) VALUES (?, ?, ?)"
            " ON CONFLICT (provider, user_id) DO UPDATE SET position = excluded.position",
            (provider, scope, str(position)),
        )

    def _read(self, connection: Connection, key: str) -> str | None:
        return read_meta(connection, self._prefix + key)

    def _write(self, connection: Connection, key: str, value: str) -> None:
        write_meta(connection, self._prefix + key, value)


def read_positions(connection: Connection) -> list[tuple[str, str, Position]]:
    """The positions in a file, each with its provider and scope."""
    rows = connection.execute("SELECT key, value FROM state_meta WHERE key LIKE 'place:%' ORDER BY key").fetchall()
    return [(*json.loads(key.removeprefix("place:")), Position.parse(value)) for key, value in rows]


def _position_key(provider: str, scope: str) -> str:
    """The key of a position in a file."""
    return f"place:{json.dumps([provider, scope])}"
