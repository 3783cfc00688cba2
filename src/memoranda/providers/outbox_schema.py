"""The tables of the outbox, each column with its meaning."""

from memoranda.db.schema import Column, Schema, Table

APPLICATION_ID = int.from_bytes(b"MemO", "big")

JOBS = Table(
    "jobs",
    "One row per thing that a provider has yet to be told.",
    (
        Column("id", "numbered", "", "Order."),
        Column("key", "text", "NOT NULL UNIQUE", "Tells a provider that it has had this before."),
        Column("provider", "text", "NOT NULL", "Who is to be told."),
        Column("scope", "text", "NOT NULL", "The user whom the provider was started for; empty for the home's owner."),
        Column("kind", "text", "NOT NULL", "turn, memory_write, session_end, session_switch, delegation."),
        Column("session_id", "text", "NOT NULL", "Whose order it is part of."),
        Column("payload", "text", "NOT NULL", "Arguments and facts, as JSON."),
        Column("created", "real", "NOT NULL", "Seconds since 1970."),
        Column("attempts", "integer", "NOT NULL DEFAULT 0", "How often it has failed."),
        Column("first_failed", "real", "", "When it failed first."),
        Column("next_try", "real", "NOT NULL DEFAULT 0", "Not before."),
        Column("last_error", "text", "NOT NULL DEFAULT ''", "Why it failed."),
        Column("state", "text", "NOT NULL DEFAULT 'waiting'", "waiting or parked."),
        Column("owner", "text", "", "The process that holds it."),
        Column("until", "real", "", "When it becomes free, unless its owner renews that."),
    ),
)
_META = Table(
    "state_meta",
    "Facts about the queue itself.",
    (Column("key", "text", "PRIMARY KEY", "Their names."), Column("value", "text", "", "Their values.")),
)
_VERSION = Table("schema_version", "A single row.", (Column("version", "integer", "NOT NULL", "Of these tables."),))
SCHEMA = Schema(
    version=1,
    tables=(JOBS, _META, _VERSION),
    indexes=("CREATE INDEX IF NOT EXISTS idx_jobs_order ON jobs(provider, scope, state, session_id, id)",),
)
