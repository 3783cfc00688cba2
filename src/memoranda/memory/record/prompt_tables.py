"""The table of system prompts: each prompt of a user is stored once, and removed with the last session that has it."""

from memoranda.storage.connection import Connection
from memoranda.storage.schema import Column, Migration, RowTrigger, Table

UNSHARED_PROMPTS = "unshared_prompts"
"""The key of the last session whose prompt was moved to the table; sessions of an earlier version follow it."""

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


def _note_unshared(connection: Connection) -> None:
    """Note that sessions of an earlier version have their prompts in their own rows; `share_prompts` moves them.

    Moving them here would write a large part of the file before it can be used.
    """
    if connection.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is not None:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES (?, '') ON CONFLICT (key) DO NOTHING", (UNSHARED_PROMPTS,)
        )


PROMPT_MIGRATION = Migration("prompts-of-sessions", _note_unshared, on_server=True)
