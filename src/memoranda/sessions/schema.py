"""The tables of the session store, each column with its meaning; the reference documentation is made from this."""

import secrets
from typing import Any

from memoranda.db.connection import Connection
from memoranda.db.schema import Column, Migration, Schema, Table

# Raised whenever a table, column, index or migration is added.
VERSION = 5

_COUNT = "DEFAULT 0"
_LATEST = 2**62

SESSIONS = Table(
    "sessions",
    "One row per session. A conversation that was compressed is a chain of sessions.",
    (
        Column("id", "text", "PRIMARY KEY", "The session's name."),
        Column("source", "text", "NOT NULL", "Where it took place: cli, telegram, cron, subagent …"),
        Column("user_id", "text", "", "Whose it is; null for the owner of the home."),
        Column("model", "text", "", "The model that answered."),
        Column("model_config", "text", "", "Its settings, as JSON."),
        Column("system_prompt", "text", "", "The frozen system prompt."),
        Column("parent_session_id", "text", "REFERENCES sessions(id)", "The session that it came from."),
        Column("started_at", "real", "NOT NULL", "Seconds since 1970."),
        Column("ended_at", "real", "", "Null while it is open."),
        Column("end_reason", "text", "", "Why it ended; the first reason stays."),
        Column("message_count", "integer", _COUNT, "Messages that were said and not taken back."),
        Column("tool_call_count", "integer", _COUNT, "Tool calls in them."),
        Column("input_tokens", "integer", _COUNT, "Tokens sent to the model."),
        Column("output_tokens", "integer", _COUNT, "Tokens it answered with."),
        Column("cache_read_tokens", "integer", _COUNT, "Input tokens read from the provider's cache."),
        Column("cache_write_tokens", "integer", _COUNT, "Input tokens written to it."),
        Column("reasoning_tokens", "integer", _COUNT, "Tokens spent on reasoning."),
        Column("billing_provider", "text", "", "Who bills."),
        Column("billing_base_url", "text", "", "At which address."),
        Column("billing_mode", "text", "", "How."),
        Column("estimated_cost_usd", "real", "", "What it should have cost."),
        Column("actual_cost_usd", "real", "", "What it did cost."),
        Column("cost_status", "text", "", "Whether the cost is known."),
        Column("cost_source", "text", "", "Where it is known from."),
        Column("pricing_version", "text", "", "By which price list."),
        Column("title", "text", "", "A name for people, unique among a user's sessions."),
        Column("api_call_count", "integer", _COUNT, "Calls to the model."),
        Column("relation", "text", "", "What it is to its parent: compression, branch or delegation."),
        Column("conversation_id", "text", "", "The first session of its compression chain."),
        Column("successor_id", "text", "", "The session that continues it after compression."),
        Column("last_active", "real", "", "The latest time of a message in it."),
        Column("active_hour", "integer", "", "The same in whole hours: it is indexed, and changes seldom."),
        Column("archived", "integer", "DEFAULT 0", "1: left out of lists."),
        Column("rewind_count", "integer", _COUNT, "How often messages were taken back."),
        Column("project", "text", "", "The repository that was worked on: where it is published, #, its first commit."),
        Column("extra", "text", "", "Fields that have no column, as JSON."),
    ),
)

MESSAGES = Table(
    "messages",
    "One row per message, in the order in which they were recorded.",
    (
        Column("id", "integer", "PRIMARY KEY", "Grows with every message, never used again."),
        Column("session_id", "text", "NOT NULL REFERENCES sessions(id)", "Its session."),
        Column("role", "text", "NOT NULL", "user, assistant, tool, system."),
        Column("content", "text", "", "What was said: text, or JSON when content_format says so."),
        Column("tool_call_id", "text", "", "The call that a tool's message answers."),
        Column("tool_calls", "text", "", "The calls that the assistant made, as JSON."),
        Column("tool_name", "text", "", "The tool that answers."),
        Column("timestamp", "real", "NOT NULL", "Seconds since 1970, as the caller said, else when it was recorded."),
        Column("token_count", "integer", "", "Tokens of the message."),
        Column("finish_reason", "text", "", "Why the model stopped."),
        Column("reasoning", "text", "", "The model's reasoning, where it is shown."),
        Column("reasoning_content", "text", "", "The same in another provider's field."),
        Column("reasoning_details", "text", "", "Structured reasoning, as JSON."),
        Column("codex_reasoning_items", "text", "", "Reasoning items of the Responses API, as JSON."),
        Column("codex_message_items", "text", "", "Message items of the Responses API, as JSON."),
        Column("external_id", "text", "", "Its name elsewhere; one per session, so that importing twice adds nothing."),
        Column("active", "integer", "NOT NULL DEFAULT 1", "0: not in the model's context any more."),
        Column("compacted", "integer", "NOT NULL DEFAULT 0", "1: compressed away, still found. Neither: taken back."),
        Column("rewound", "integer", "", "Which rewind of the session took it back; negative: of one that repeats it."),
        Column("copy_of", "integer", "", "The message that this one repeats after compression."),
        Column("is_summary", "integer", "", "1: written by compression, said by nobody."),
        Column("content_format", "text", "", "null: text; json: JSON; pieces: a list of pieces; same: see copy_of."),
        Column("extra", "text", "", "Fields that have no column, as JSON."),
    ),
)  # fmt: skip

CHANGES = Table(
    "changes",
    "What happened besides appending, for whoever follows the store.",
    (
        Column("seq", "numbered", "", "Order."),
        Column("session_id", "text", "NOT NULL", "The session that changed, or is gone."),
        Column("from_message", "integer", "", "Its messages from this one on; null: the session itself."),
    ),
)

DELETED_SESSIONS = Table(
    "deleted_sessions",
    "Sessions that were deleted: their names and nothing else, so that no import brings them back.",
    (Column("id", "text", "PRIMARY KEY", "The session's name."),),
)


def _name_deleted(connection: Connection) -> None:
    """What was deleted before its name was kept has left a line for followers, and no session."""
    connection.execute(
        "INSERT INTO deleted_sessions (id) SELECT DISTINCT session_id FROM changes"
        " WHERE session_id NOT IN (SELECT id FROM sessions) ON CONFLICT (id) DO NOTHING"
    )


def hour_of(moment: Any) -> int | None:
    """The hour that a moment is in; None for what is no moment, as another program may have stored it."""
    return int(moment // 3600) if isinstance(moment, (int, float)) and abs(moment) < _LATEST else None


def _fill_hours(connection: Connection) -> None:
    connection.execute("DROP INDEX IF EXISTS idx_sessions_active")
    rows = connection.execute("SELECT id, last_active FROM sessions WHERE last_active IS NOT NULL").fetchall()
    hours = [(hour_of(last_active), session_id) for session_id, last_active in rows]
    connection.executemany("UPDATE sessions SET active_hour = ? WHERE id = ?", hours)


def _name_store(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES ('store_id', ?) ON CONFLICT (key) DO NOTHING",
        (secrets.token_hex(8),),
    )


SCHEMA = Schema(
    version=VERSION,
    tables=(SESSIONS, MESSAGES, CHANGES, DELETED_SESSIONS),
    migrations=(
        Migration("names-of-deleted-sessions", _name_deleted),
        Migration("hours-of-activity", _fill_hours),
        Migration("name-of-the-store", _name_store),
    ),
    indexes=(
        "CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC)",
        # Not on last_active, which changes with every message: a page of the index would be written each time.
        "CREATE INDEX IF NOT EXISTS idx_sessions_hour ON sessions(active_hour)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_user_hour ON sessions(user_id, active_hour)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_conversation ON sessions(conversation_id)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_project ON sessions(project) WHERE project IS NOT NULL",
        # A title is unique for its user: a collision must not tell one user about another.
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions(title, COALESCE(user_id, ''))"
        " WHERE title IS NOT NULL",
        "CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_messages_external ON messages(session_id, external_id)"
        " WHERE external_id IS NOT NULL",
        # What repeats a message must be found when that is deleted, wherever it is.
        "CREATE INDEX IF NOT EXISTS idx_messages_copies ON messages(copy_of) WHERE copy_of IS NOT NULL",
    ),
)
