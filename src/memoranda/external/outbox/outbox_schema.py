"""The tables of the outbox, with the meaning of each column."""

from pathlib import Path

from memoranda.external.outbox.outbox_marker import OutboxGuard
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Column, Schema, ServerTables, Table

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
_META = Table(
    "state_meta",
    "State of the queue itself: positions, last deliveries, pauses.",
    (Column("key", "text", "PRIMARY KEY", "Name."), Column("value", "text", "", "Value.")),
)
_VERSION = Table("schema_version", "A single row.", (Column("version", "integer", "NOT NULL", "Of these tables."),))
_INDEXES = ("CREATE INDEX IF NOT EXISTS idx_jobs_order ON jobs(provider, scope, state, session_id, id)",)
SCHEMA = Schema(version=1, tables=(JOBS, _META, _VERSION), indexes=_INDEXES)

POSITIONS = Table(
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
    tables=(JOBS, POSITIONS),
    indexes=(
        *_INDEXES,
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_outbox_positions ON outbox_positions(provider, user_id)",
    ),
    server=ServerTables(user_tables=((JOBS.name, "scope"), (POSITIONS.name, "user_id"))),
)
"""Positions are rows of users there, so that row-level security protects them, and a move takes them along."""


def outbox_database(home: Path, server_url: str = "", *, wait: float = 10.0) -> LazyDatabase:
    """The database of the outbox: a file of the home, or the server of all its nodes."""
    schema, guard = (SERVER_SCHEMA, None) if server_url else (SCHEMA, OutboxGuard(home / FILE_NAME))
    return LazyDatabase(home / FILE_NAME, schema, APPLICATION_ID, server_url=server_url, wait=wait, guard=guard)
