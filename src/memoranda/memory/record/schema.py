"""The tables of the session store, each column with its meaning; the reference page on tables is generated from it.

Each system prompt of a user is stored once, and removed with the last session that has it.
"""

import os
from typing import Any

from memoranda.storage.connection import Connection
from memoranda.storage.schema import ChangeTrigger, Column, Migration, RowTrigger, Schema, ServerTables, Table
from memoranda.storage.state_meta import add_meta

SYSTEM_PROMPTS = Table(
    "system_prompts",
    "One row per system prompt of a user, which all sessions with this prompt share.",
    (
        Column("id", "text", "PRIMARY KEY", "A digest of the user and the text, by which damage is noticed."),
        Column("user_id", "text", "", "The user it belongs to; null for the owner of the home."),
        Column("text", "text", "NOT NULL", "The prompt."),
    ),
)

PROMPT_REFERENCE = Column("system_prompt_id", "text", "", "The row of `system_prompts` with its prompt.")

PROMPT_INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_sessions_prompt ON sessions(system_prompt_id) WHERE system_prompt_id IS NOT NULL",
)

_REMOVE = (
    "DELETE FROM system_prompts WHERE id = OLD.system_prompt_id"
    " AND NOT EXISTS (SELECT 1 FROM sessions WHERE system_prompt_id = OLD.system_prompt_id)"
)
PROMPT_TRIGGERS = (
    RowTrigger(
        "remove_prompt_of_deleted_session", "DELETE", "sessions", "OLD.system_prompt_id IS NOT NULL", (_REMOVE,)
    ),
    RowTrigger(
        "remove_replaced_prompt",
        "UPDATE OF system_prompt_id",
        "sessions",
        "OLD.system_prompt_id IS NOT NULL AND NEW.system_prompt_id IS NOT OLD.system_prompt_id",
        (_REMOVE,),
    ),
)

# Of two transactions, one that adds a session with a prompt and one that deletes the last session with it, the second
# waits for the first, and then looks again.
_LOCK = "pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || {}, 13))"
PROMPT_SERVER_TRIGGERS = (
    "CREATE OR REPLACE FUNCTION lock_added_prompt() RETURNS trigger LANGUAGE plpgsql AS $function$ BEGIN"
    f" PERFORM {_LOCK.format('NEW.id')}; RETURN NEW; END $function$",
    "CREATE OR REPLACE TRIGGER lock_added_prompt BEFORE INSERT ON system_prompts FOR EACH ROW"
    " EXECUTE FUNCTION lock_added_prompt()",
    "CREATE OR REPLACE FUNCTION remove_unused_prompt() RETURNS trigger LANGUAGE plpgsql AS $function$ BEGIN"
    " IF TG_OP = 'UPDATE' AND NEW.system_prompt_id IS NOT DISTINCT FROM OLD.system_prompt_id THEN RETURN NULL; END IF;"
    f" PERFORM {_LOCK.format('OLD.system_prompt_id')}; {_REMOVE}; RETURN NULL; END $function$",
    "CREATE OR REPLACE TRIGGER remove_unused_prompt AFTER DELETE OR UPDATE OF system_prompt_id ON sessions FOR EACH ROW"
    " WHEN (OLD.system_prompt_id IS NOT NULL) EXECUTE FUNCTION remove_unused_prompt()",
)


ITEMS = Table(
    "memory_items",
    "One row per version of an item. The row with `current` = 1 is the item; the others are its history.",
    (
        Column("id", "numbered", "", "Increases with every version of any item and is never reused."),
        Column("item_id", "text", "NOT NULL", "A hash of user, namespace and key, which all versions share."),
        Column("user_id", "text", "", "The user it belongs to; null for the owner of the home."),
        Column("namespace", "text", "NOT NULL", "The labels of its namespace, as a JSON list."),
        Column("key", "text", "NOT NULL", "Its key within the namespace."),
        Column("value", "text", "", "The value, as JSON; null if this version says that the item was deleted."),
        Column("indexed", "text", "", "null: all texts are searchable; else a JSON list of the paths that are."),
        Column("version", "integer", "NOT NULL", "Counts the versions of the item, from 1."),
        Column("event", "text", "NOT NULL", "What made this version: add, update or delete."),
        Column("current", "integer", "NOT NULL DEFAULT 0", "1: the live version of the item, until it expires."),
        Column("created_at", "real", "NOT NULL", "When the item was added, in seconds since 1970."),
        Column("updated_at", "real", "NOT NULL", "When this version was written, in seconds since 1970."),
        Column("ttl", "real", "", "How many seconds it lives after a write, and after a read that refreshes it."),
        Column("expires_at", "real", "", "From then on no call returns it, in seconds since 1970; null: never."),
        Column("checksum", "integer", "", "CRC-32 of what was written, by which damage is noticed."),
    ),
)

ITEM_CHANGES = Table(
    "item_changes",
    "The feed of items that were replaced or removed, for the index of items.",
    (
        Column("seq", "numbered", "", "Increases with every change."),
        Column("item_id", "text", "NOT NULL", "The item that changed or was removed."),
    ),
)

ITEM_INDEXES = (
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_items_version ON memory_items(item_id, version)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_items_current ON memory_items(item_id) WHERE current = 1",
    "CREATE INDEX IF NOT EXISTS idx_items_namespace ON memory_items(user_id, namespace) WHERE current = 1",
    "CREATE INDEX IF NOT EXISTS idx_items_expiry ON memory_items(expires_at)"
    " WHERE expires_at IS NOT NULL AND current = 1",
)


# Increased whenever a table, column, index, trigger or migration is added.
VERSION = 2

_COUNT = "DEFAULT 0"
_MAX_TIMESTAMP = 2**62

SESSIONS = Table(
    "sessions",
    "One row per session. A compressed conversation is a chain of sessions.",
    (
        Column("id", "text", "PRIMARY KEY", "The id of the session."),
        Column("source", "text", "NOT NULL", "Which program recorded it: cli, telegram, cron, subagent …"),
        Column("user_id", "text", "", "The user it belongs to; null for the owner of the home."),
        Column("model", "text", "", "The model that answered."),
        Column("model_config", "text", "", "Its settings, as JSON."),
        Column("system_prompt", "text", "", "The frozen system prompt, if it is not in `system_prompts`."),
        Column(
            "parent_session_id",
            "text",
            "REFERENCES sessions(id)",
            "The session that it continues, branches from or works for.",
        ),
        Column("started_at", "real", "NOT NULL", "Seconds since 1970."),
        Column("ended_at", "real", "", "Seconds since 1970; null while the session is open."),
        Column("end_reason", "text", "", "Why it ended; later reasons do not replace the first."),
        Column("message_count", "integer", _COUNT, "Messages in its context, with copies and summaries."),
        Column("tool_call_count", "integer", _COUNT, "Tool calls in the messages of `own_message_count`."),
        Column("input_tokens", "integer", _COUNT, "Tokens sent to the model."),
        Column("output_tokens", "integer", _COUNT, "Tokens it answered with."),
        Column("cache_read_tokens", "integer", _COUNT, "Input tokens read from the provider's cache."),
        Column("cache_write_tokens", "integer", _COUNT, "Input tokens written to it."),
        Column("reasoning_tokens", "integer", _COUNT, "Tokens spent on reasoning."),
        Column("billing_provider", "text", "", "The provider that bills."),
        Column("billing_base_url", "text", "", "The API address of that provider."),
        Column("billing_mode", "text", "", "The kind of billing, such as subscription or per token."),
        Column("estimated_cost_usd", "real", "", "The estimated cost."),
        Column("actual_cost_usd", "real", "", "The cost that the provider reported."),
        Column("cost_status", "text", "", "Whether the cost is estimated, actual or unknown."),
        Column("cost_source", "text", "", "Where the cost comes from."),
        Column("pricing_version", "text", "", "The version of the price list."),
        Column("title", "text", "", "The title, unique among a user's sessions."),
        Column("api_call_count", "integer", _COUNT, "Calls to the model."),
        Column("relation", "text", "", "How it relates to its parent: compression, branch or delegation."),
        Column("conversation_id", "text", "", "The first session of its compression chain."),
        Column("successor_id", "text", "", "The session that continues it after compression."),
        Column("last_active", "real", "", "The latest time of a message in it."),
        Column("active_hour", "integer", "", "The same in whole hours, for the index, which is then rarely written."),
        Column("archived", "integer", "DEFAULT 0", "1: omitted from lists."),
        Column(
            "own_message_count",
            "integer",
            _COUNT,
            "Messages that were said in it: without copies, summaries and rewound ones, also those out of its context.",
        ),
        Column("rewind_count", "integer", _COUNT, "How many times the session was rewound."),
        Column(
            "project",
            "text",
            "",
            "The repository: its remote address, #, its first commit. Outside of one, the directory.",
        ),
        Column("extra", "text", "", "Fields without a column, as JSON."),
        PROMPT_REFERENCE,
    ),
)

MESSAGES = Table(
    "messages",
    "One row per message, in the order of recording.",
    (
        Column("id", "integer", "PRIMARY KEY", "Increases with every message and is never reused."),
        Column("session_id", "text", "NOT NULL REFERENCES sessions(id)", "Its session."),
        Column("role", "text", "NOT NULL", "user, assistant, tool, system."),
        Column("content", "text", "", "The content: text, or JSON if content_format says so."),
        Column("tool_call_id", "text", "", "The tool call that a tool message answers."),
        Column("tool_calls", "text", "", "The tool calls of an assistant message, as JSON."),
        Column("tool_name", "text", "", "The tool that a tool message comes from."),
        Column("timestamp", "real", "NOT NULL", "Seconds since 1970: the caller's time, or that of recording."),
        Column("token_count", "integer", "", "Tokens of the message."),
        Column("finish_reason", "text", "", "Why the model stopped."),
        Column("reasoning", "text", "", "The model's reasoning, where a provider shows it."),
        Column("reasoning_content", "text", "", "The same in another provider's field."),
        Column("reasoning_details", "text", "", "Structured reasoning, as JSON."),
        Column("codex_reasoning_items", "text", "", "Reasoning items of the Responses API, as JSON."),
        Column("codex_message_items", "text", "", "Message items of the Responses API, as JSON."),
        Column(
            "external_id",
            "text",
            "",
            "Its id in another program, unique in the session, so that importing twice adds nothing.",
        ),
        Column(
            "active", "integer", "NOT NULL DEFAULT 1", "1: in the session's context. 0: compressed away or rewound."
        ),
        Column(
            "compacted",
            "integer",
            "NOT NULL DEFAULT 0",
            "1: compressed away, but search finds it. With neither flag a message was rewound.",
        ),
        Column(
            "rewound",
            "integer",
            "",
            "The rewind that removed it, counted per session; negative if it was active in an earlier session, "
            "0 if it was rewound in the program it was imported from.",
        ),
        Column("copy_of", "integer", "", "The original of which this message is a copy after compression."),
        Column("is_summary", "integer", "", "1: a summary that compression wrote."),
        Column(
            "content_format",
            "text",
            "",
            "null: text; json: JSON; pieces: a JSON list of text pieces; same: as in copy_of.",
        ),
        Column("extra", "text", "", "Fields without a column, as JSON."),
        Column(
            "checksum",
            "integer",
            "",
            "CRC-32 of what was said, by whom and when, by which damage is noticed; null until it is filled.",
        ),
    ),
)

CHANGES = Table(
    "changes",
    "The feed of everything that changed except appends, for followers such as the search index.",
    (
        Column("seq", "numbered", "", "Increases with every change."),
        Column("session_id", "text", "NOT NULL", "The session that changed or was deleted."),
        Column("from_message", "integer", "", "Its messages from this id on changed; null: the session itself."),
    ),
)

DELETED_SESSIONS = Table(
    "deleted_sessions",
    "The ids of deleted sessions and nothing else, so that no import restores them.",
    (Column("id", "text", "PRIMARY KEY", "The id of the session."),),
)


NOTIFICATIONS = Table(
    "notifications",
    "What external memories are still to receive, besides the turns, which are found by their messages.",
    (
        Column("id", "numbered", "", "Increases with every notification."),
        Column("provider", "text", "NOT NULL", "The provider that receives it."),
        Column(
            "user_id", "text", "NOT NULL", "The user that the provider was started for; empty for the home's owner."
        ),
        Column("kind", "text", "NOT NULL", "turn, memory_write, session_end, session_switch, delegation, forget."),
        Column("session_id", "text", "NOT NULL", "The session whose order it follows."),
        Column("key", "text", "NOT NULL", "The idempotency key, which is the same for a repeated delivery."),
        Column("payload", "text", "NOT NULL", "Arguments and facts, as JSON; messages of the session are left out."),
        Column("after_message", "integer", "NOT NULL", "The last message that was recorded before it."),
        Column("owner", "text", "NOT NULL", "The process that delivers it while it lives; empty: any process."),
        Column("created", "real", "NOT NULL", "Seconds since 1970."),
        Column("checksum", "integer", "NOT NULL", "CRC-32 of what was recorded, by which damage is noticed."),
    ),
)

_STAMP = Column("version", "text", "NOT NULL DEFAULT ''", "The stamp of its last change; empty: as it was recorded.")
_RUN = Column("run", "integer", "NOT NULL DEFAULT 0", "The synchronisation that noticed or received its last change.")

SYNCED_ROWS = Table(
    "synced_rows",
    "One row per thing that synchronised machines share, also of removed ones, beside messages and items.",
    (
        Column("name", "text", "PRIMARY KEY", "Its kind, a colon, and its name that all machines share."),
        Column("stamp", "text", "NOT NULL", "When and where it was last changed; the later stamp wins."),
        Column("base", "text", "NOT NULL", "The stamp of what this change replaced where it was made."),
        Column("digest", "text", "NOT NULL", "A digest of its content; empty if it was removed."),
        _RUN,
    ),
)

SYNCED_SESSIONS = Table(
    "synced_sessions",
    "The names of sessions that all synchronised machines share.",
    (
        Column("key", "text", "PRIMARY KEY", "Its first id, and when it started or its first imported message."),
        Column("session_id", "text", "NOT NULL", "Its id here; empty if it was deleted."),
        Column("fingerprint", "text", "NOT NULL DEFAULT ''", "Of the row when it was last read."),
        Column("parent", "text", "NOT NULL DEFAULT ''", "The key of the session that it comes from, or empty."),
        Column("relation", "text", "NOT NULL DEFAULT ''", "How it was related to it where it began."),
    ),
)

MESSAGE_VERSIONS = Table(
    "message_versions",
    "Synchronised messages that came from another machine, or that changed or were deleted since they were sent. A"
    " message without a row is as it was recorded here.",
    (
        Column("session_id", "text", "NOT NULL", "Its session here."),
        Column("gid", "text", "NOT NULL", "Its id that all machines share: external id, or machine and id there."),
        Column("message_id", "integer", "NOT NULL", "Its id here, also after it was deleted; 0 if it never was here."),
        Column("changed", "integer", "NOT NULL DEFAULT 0", "1: it was changed or deleted, and has no new stamp yet."),
        _STAMP,
        _RUN,
    ),
)

ITEM_VERSIONS = Table(
    "item_versions",
    "One row per synchronised item, also of removed ones; which value is the latest is in its history.",
    (
        Column("item_id", "text", "PRIMARY KEY", "The id that all its versions share, on all machines."),
        Column("written_at", "real", "NOT NULL", "When it was last written; a removal leaves what is written later."),
        Column("gone", "integer", "NOT NULL DEFAULT 0", "1: it was removed with its history."),
        Column("changed", "integer", "NOT NULL DEFAULT 0", "1: it was written, forgotten or removed since the run."),
        _RUN,
        Column("machine", "text", "NOT NULL DEFAULT ''", "Where it came from; empty if it was changed here."),
    ),
)
VERSION_TABLES = (SYNCED_ROWS, SYNCED_SESSIONS, MESSAGE_VERSIONS, ITEM_VERSIONS)

SYNC_POSITION = "sync_position"
"""The key in `state_meta` of the last message that was read for other machines; not null if changes are noted."""
SYNC_MACHINE = "sync_machine"
"""The key of the id of this machine among those that synchronise."""

_VERSION_INDEXES = (
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_message_versions ON message_versions(session_id, gid)",
    "CREATE INDEX IF NOT EXISTS idx_message_versions_id ON message_versions(message_id)",
    "CREATE INDEX IF NOT EXISTS idx_message_versions_gid ON message_versions(gid)",
    "CREATE INDEX IF NOT EXISTS idx_message_versions_run ON message_versions(run)",
    "CREATE INDEX IF NOT EXISTS idx_message_versions_changed ON message_versions(session_id) WHERE changed = 1",
    "CREATE INDEX IF NOT EXISTS idx_synced_sessions ON synced_sessions(session_id)",
    "CREATE INDEX IF NOT EXISTS idx_synced_sessions_parent ON synced_sessions(parent) WHERE parent <> ''",
)
_META = "(SELECT value FROM state_meta WHERE key = '{}')"
_POSITION = f"CAST({_META.format(SYNC_POSITION)} AS INTEGER)"
_WAS_SENT = (
    f"{_POSITION} IS NOT NULL AND"
    f" (OLD.id <= {_POSITION} OR EXISTS (SELECT 1 FROM message_versions WHERE message_id = OLD.id))"
)
_NOTE_VERSION = (
    "INSERT INTO message_versions (session_id, gid, message_id) SELECT OLD.session_id,"
    f" COALESCE('x:' || OLD.external_id, {_META.format(SYNC_MACHINE)} || ':' || OLD.id), OLD.id"
    " WHERE NOT EXISTS (SELECT 1 FROM message_versions WHERE message_id = OLD.id)",
    "UPDATE message_versions SET changed = 1 WHERE message_id = OLD.id",
)
_NOTE_ITEM = ("TRUE", ("UPDATE item_versions SET changed = 1 WHERE item_id = NEW.item_id",))


def hour_of(timestamp: Any) -> int | None:
    """The hour of a timestamp; None for any other value, which another program may have stored."""
    return int(timestamp // 3600) if isinstance(timestamp, (int, float)) and abs(timestamp) < _MAX_TIMESTAMP else None


def _name_store(connection: Connection) -> None:
    add_meta(connection, "store_id", os.urandom(8).hex())


def _drop_first_sync(connection: Connection) -> None:
    """Drop what the first form of synchronisation knew, so that the next run begins as in a home that never had one."""
    for table in ("session_keys", "session_versions", "sync_runs"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for kept in (MESSAGE_VERSIONS, ITEM_VERSIONS):
        connection.execute(f"DELETE FROM {kept.name}")
    connection.execute("DELETE FROM state_meta WHERE key LIKE 'sync_%'")


_SEARCHED_COLUMNS = ("role", "content", "content_format", "tool_name", "tool_calls")
_CAN_BE_FOUND = "({0}.active = 1 OR {0}.compacted = 1) AND {0}.copy_of IS NULL AND {0}.is_summary IS NULL"
_COVERED_COLUMNS = tuple(
    column.name
    for column in MESSAGES.columns
    if column.name not in ("id", "active", "compacted", "rewound", "checksum")
)
_VERSIONED_COLUMNS = (*_COVERED_COLUMNS, "active", "compacted", "rewound")
FILTERED_COLUMNS = ("source", "project", "model")
"""The columns of sessions that a search can filter by; every index follows them."""
_FOLLOWED_COLUMNS = ("title", "user_id", "archived", "conversation_id", "started_at", *FILTERED_COLUMNS)


def _any_differs(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in columns)


# The store notes its own changes, in fewer rows; these triggers note what other programs do with SQL. Messages of a
# session whose count is negative are deleted by the store itself.
_TRIGGERS = (
    ChangeTrigger(
        "note_updated_message",
        f"UPDATE OF {', '.join(_SEARCHED_COLUMNS)}, active, compacted, copy_of, is_summary",
        "messages",
        f"{_any_differs(_SEARCHED_COLUMNS)} OR ({_CAN_BE_FOUND.format('OLD')}) IS NOT ({_CAN_BE_FOUND.format('NEW')})",
        "changes",
        (("session_id", "NEW.session_id"), ("from_message", "NEW.id")),
    ),
    ChangeTrigger(
        "note_deleted_message",
        "DELETE",
        "messages",
        "COALESCE((SELECT message_count FROM sessions WHERE id = OLD.session_id), 0) >= 0",
        "changes",
        (("session_id", "OLD.session_id"), ("from_message", "OLD.id")),
    ),
    ChangeTrigger(
        "note_updated_session",
        f"UPDATE OF {', '.join(_FOLLOWED_COLUMNS)}",
        "sessions",
        _any_differs(_FOLLOWED_COLUMNS),
        "changes",
        (("session_id", "NEW.id"), ("from_message", "NULL")),
    ),
)

# Hermes and other programs insert sessions and messages without the columns that only this store has.
_CONTINUES = "id = NEW.parent_session_id AND successor_id = NEW.id"
_LATEST = (
    "(SELECT timestamp FROM messages WHERE session_id = NEW.id AND copy_of IS NULL AND is_summary IS NULL"
    " ORDER BY id DESC LIMIT 1)"
)
_ROW_TRIGGERS = (
    RowTrigger(
        "complete_inserted_session",
        "INSERT",
        "sessions",
        "NEW.conversation_id IS NULL",
        (
            "UPDATE sessions SET successor_id = NEW.id WHERE id = NEW.parent_session_id AND successor_id IS NULL"
            " AND end_reason = 'compression' AND NEW.source NOT IN ('tool', 'subagent')",
            "UPDATE sessions SET last_active = COALESCE(last_active, started_at),"
            " active_hour = CAST(COALESCE(last_active, started_at) / 3600 AS INTEGER),"
            f" conversation_id = COALESCE((SELECT conversation_id FROM sessions WHERE {_CONTINUES}), NEW.id),"
            f" relation = CASE WHEN parent_session_id IS NULL THEN NULL"
            f"  WHEN EXISTS (SELECT 1 FROM sessions WHERE {_CONTINUES}) THEN 'compression'"
            "  WHEN source IN ('tool', 'subagent') OR model_config LIKE '%\"_delegate_from\"%' THEN 'delegation'"
            "  ELSE 'branch' END WHERE id = NEW.id",
        ),
    ),
    RowTrigger(
        "complete_counted_session",
        "UPDATE OF message_count",
        "sessions",
        # The store sets both counts; a negative one means that it deletes the messages.
        "NEW.message_count >= 0 AND NEW.message_count <> OLD.message_count"
        " AND NEW.own_message_count IS OLD.own_message_count",
        (
            "UPDATE sessions SET own_message_count = (SELECT count(*) FROM messages m WHERE m.session_id = NEW.id"
            f" AND {_CAN_BE_FOUND.format('m')}) WHERE id = NEW.id",
            f"UPDATE sessions SET last_active = {_LATEST}, active_hour = CAST({_LATEST} / 3600 AS INTEGER)"
            f" WHERE id = NEW.id AND last_active < {_LATEST}",
        ),
    ),
    # The store sets the checksum with what it covers; another program does not know it.
    RowTrigger(
        "drop_checksum_of_updated_message",
        f"UPDATE OF {', '.join(_COVERED_COLUMNS)}",
        "messages",
        f"NEW.checksum IS NOT NULL AND NEW.checksum IS OLD.checksum AND ({_any_differs(_COVERED_COLUMNS)})",
        ("UPDATE messages SET checksum = NULL WHERE id = NEW.id",),
    ),
    # What was sent to other machines, or came from them, must be sent again.
    RowTrigger(
        "note_changed_version",
        f"UPDATE OF {', '.join(_VERSIONED_COLUMNS)}",
        "messages",
        f"{_WAS_SENT} AND ({_any_differs(_VERSIONED_COLUMNS)})",
        _NOTE_VERSION,
    ),
    RowTrigger("note_deleted_version", "DELETE", "messages", _WAS_SENT, _NOTE_VERSION),
    RowTrigger("note_written_item", "INSERT", ITEMS.name, *_NOTE_ITEM),
    RowTrigger("note_changed_item", "INSERT", ITEM_CHANGES.name, *_NOTE_ITEM),
)

_USER_OF_SESSION = "COALESCE((SELECT user_id FROM sessions WHERE id = NEW.session_id), '')"
_SERVER = ServerTables(
    columns=(
        ("messages", Column("user_id", "text", "", "The user of its session; '' for the owner of the home.")),
        (
            "messages",
            Column("append_id", "integer", "", "A random number of the append, so that a repeated one adds nothing."),
        ),
    ),
    feeds=(
        ("messages", "id"),
        ("changes", "seq"),
        (ITEMS.name, "id"),
        (ITEM_CHANGES.name, "seq"),
        (NOTIFICATIONS.name, "id"),
    ),
    user_tables=(
        ("sessions", "COALESCE(user_id, '')"),
        ("messages", "user_id"),
        (ITEMS.name, "COALESCE(user_id, '')"),
        (SYSTEM_PROMPTS.name, "COALESCE(user_id, '')"),
        (NOTIFICATIONS.name, "user_id"),
    ),
    # Reads a session's messages, and refuses an append that is repeated after a lost connection.
    omitted_indexes=frozenset({"idx_messages_session"}),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_messages_append ON messages(session_id, append_id)",
        "CREATE INDEX IF NOT EXISTS idx_messages_user_feed ON messages(user_id, xid, id)",
    ),
    triggers=(
        # Every append but the plain one, which knows the user.
        "CREATE OR REPLACE FUNCTION fill_user_of_message() RETURNS trigger LANGUAGE plpgsql AS $function$ BEGIN"
        f" NEW.user_id := {_USER_OF_SESSION}; RETURN NEW; END $function$",
        "CREATE OR REPLACE TRIGGER fill_user_of_message BEFORE INSERT ON messages FOR EACH ROW"
        " WHEN (NEW.user_id IS NULL) EXECUTE FUNCTION fill_user_of_message()",
        "CREATE OR REPLACE FUNCTION change_user_of_messages() RETURNS trigger LANGUAGE plpgsql AS $function$ BEGIN"
        " UPDATE messages SET user_id = COALESCE(NEW.user_id, '') WHERE session_id = NEW.id; RETURN NULL;"
        " END $function$",
        "CREATE OR REPLACE TRIGGER change_user_of_messages AFTER UPDATE OF user_id ON sessions FOR EACH ROW"
        " WHEN (NEW.user_id IS DISTINCT FROM OLD.user_id) EXECUTE FUNCTION change_user_of_messages()",
        *PROMPT_SERVER_TRIGGERS,
    ),
)

SCHEMA = Schema(
    version=VERSION,
    tables=(
        SESSIONS,
        MESSAGES,
        CHANGES,
        DELETED_SESSIONS,
        ITEMS,
        ITEM_CHANGES,
        SYSTEM_PROMPTS,
        NOTIFICATIONS,
        *VERSION_TABLES,
    ),
    migrations=(
        Migration("name-of-the-store", _name_store),
        Migration("one-bundle-for-each-machine", _drop_first_sync),
    ),
    indexes=(
        "CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC)",
        # Not on last_active, which changes with every message: a page of the index would be written each time.
        "CREATE INDEX IF NOT EXISTS idx_sessions_hour ON sessions(active_hour)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_user_hour ON sessions(user_id, active_hour)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_user_started ON sessions(user_id, started_at)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_conversation ON sessions(conversation_id)",
        "CREATE INDEX IF NOT EXISTS idx_sessions_project ON sessions(project) WHERE project IS NOT NULL",
        # Titles are unique per user: a collision must not reveal another user's title.
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions(title, COALESCE(user_id, ''))"
        " WHERE title IS NOT NULL",
        "CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_messages_external ON messages(session_id, external_id)"
        " WHERE external_id IS NOT NULL",
        # Deleting a message must find its copies in all sessions.
        "CREATE INDEX IF NOT EXISTS idx_messages_copies ON messages(copy_of) WHERE copy_of IS NOT NULL",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_notifications_key ON notifications(provider, user_id, key)",
        *ITEM_INDEXES,
        *PROMPT_INDEXES,
        *_VERSION_INDEXES,
    ),
    triggers=(*_TRIGGERS, *_ROW_TRIGGERS, *PROMPT_TRIGGERS),
    server=_SERVER,
)
