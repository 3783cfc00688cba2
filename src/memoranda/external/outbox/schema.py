"""The tables of the outbox: what is not delivered yet, and how far the record has been read for each provider.

The last delivery to a provider, and a pause that its service asked for, are facts in `state_meta`.
"""

import json
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.memory.record.notifications import FeedHeads
from memoranda.storage.connection import Connection
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.position import Position
from memoranda.storage.schema import Column, Forgetting, Schema, ServerTables, Table
from memoranda.storage.state_meta import drop_meta, read_meta, write_meta

JOBS = Table(
    "jobs",
    "One row per notification that was read from the record and not received by its provider yet; it has no text.",
    (
        Column("id", "numbered", "", "Order."),
        Column("provider", "text", "NOT NULL", "The provider that receives it."),
        Column("user_id", "text", "NOT NULL", "The user that the provider was started for; empty for the owner."),
        Column("key", "text", "NOT NULL", "The idempotency key, which is the same for a repeated delivery."),
        Column("kind", "text", "NOT NULL", "turn, memory_write, session_end, session_switch, delegation, forget."),
        Column("session_id", "text", "NOT NULL", "The session whose order it follows."),
        Column("first_message", "integer", "", "The first message of a turn in the record."),
        Column("last_message", "integer", "", "The last message of a turn in the record."),
        Column("notification", "integer", "", "The row of `notifications` in the record, if it is not such a turn."),
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
POSITIONS = Table(
    "outbox_positions",
    "How far the record has been read for each provider and user.",
    (
        Column("id", "numbered", "", "No meaning."),
        Column("provider", "text", "NOT NULL", "The provider."),
        Column("user_id", "text", "NOT NULL", "The user; empty for the home's owner."),
        Column("position", "text", "NOT NULL", "The last message that was read."),
        Column("notified", "text", "NOT NULL DEFAULT '0'", "The last notification that was read."),
    ),
)
SCHEMA = Schema(
    version=1,
    name="outbox",
    tables=(JOBS, POSITIONS),
    indexes=(
        "CREATE INDEX IF NOT EXISTS idx_jobs_order ON jobs(provider, user_id, state, session_id, id)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_jobs_key ON jobs(provider, user_id, key)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_outbox_positions ON outbox_positions(provider, user_id)",
    ),
    server=ServerTables(user_tables=((JOBS.name, "user_id"), (POSITIONS.name, "user_id"))),
    forgetting=Forgetting(texts=frozenset({"last_error"})),
    # What is lost of the notifications is still in the record, and read again.
    after_salvage=("UPDATE outbox_positions SET notified = '0'",),
)


def outbox_database(home: Path, server_url: str = "", *, wait: float = 10.0) -> HomeDatabase:
    """The tables of the outbox: in `home.db`, or on the server of all its nodes."""
    return HomeDatabase(home, SCHEMA, server_url=server_url, wait=wait)


def last_delivered(connection: Connection, provider: str) -> float:
    """The timestamp of the last delivery to a provider; 0 when there was none."""
    found = read_meta(connection, f"outbox:last_delivered:{provider}")
    return float(found) if found else 0.0


def note_delivery(connection: Connection, provider: str, timestamp: float) -> None:
    write_meta(connection, f"outbox:last_delivered:{provider}", str(timestamp))


def pause_deliveries(connection: Connection, provider: str, now: float, until: float) -> None:
    """Make every process wait before it delivers anything to a provider, because its service asked for it."""
    write_meta(connection, f"outbox:paused:{provider}", json.dumps([now, until]))


def paused_until(connection: Connection, provider: str, now: float) -> float:
    """When deliveries to a provider may continue; 0 when they are not paused, or the clock was set back since."""
    found = read_meta(connection, f"outbox:paused:{provider}")
    try:
        since, until = json.loads(found) if found else (0.0, 0.0)
        return float(until) if since <= now else 0.0
    except (ValueError, TypeError):
        return 0.0


def resume_deliveries(connection: Connection, provider: str) -> None:
    drop_meta(connection, f"outbox:paused:{provider}")


def read_position(connection: Connection, provider: str, scope: str) -> FeedHeads:
    """How far the record has been read for a provider: from its beginning, if it never was.

    Only turns that name the provider are found there, so nothing is delivered from before it was in use.
    """
    row = connection.execute(
        "SELECT position, notified FROM outbox_positions WHERE provider = ? AND user_id = ?", (provider, scope)
    ).fetchone()
    try:
        return FeedHeads(*map(Position.parse, row)) if row else FeedHeads()
    except ValueError as error:
        raise StorageError(f"The position of {provider} in the record cannot be read: {error}.") from error


def write_position(connection: Connection, provider: str, scope: str, reached: FeedHeads) -> None:
    connection.execute(
        "INSERT INTO outbox_positions (provider, user_id, position, notified) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (provider, user_id) DO UPDATE SET position = excluded.position, notified = excluded.notified",
        (provider, scope, str(reached.messages), str(reached.notifications)),
    )


def read_positions(connection: Connection) -> list[tuple[str, str, Position]]:
    """The positions in the feed of messages, each with its provider and user."""
    rows = connection.execute("SELECT provider, user_id, position FROM outbox_positions ORDER BY id").fetchall()
    return [(provider, user, Position.parse(text)) for provider, user, text in rows]
