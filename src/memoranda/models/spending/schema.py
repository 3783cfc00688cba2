"""The tables of the spend ledger."""

from memoranda.storage.connection import Connection
from memoranda.storage.schema import Column, Forgetting, Schema, ServerTables, Table

CALLS = Table(
    "calls",
    "One row per model call, without any text of the conversation.",
    (
        Column("id", "numbered", "", "Order of writing."),
        Column("key", "text", "NOT NULL UNIQUE", "Identifies the call: writing it twice creates one row."),
        Column("at", "real", "NOT NULL", "When it started, in seconds since 1970."),
        Column("purpose", "text", "NOT NULL", "chat, compression, review, delegation, search-summary …"),
        Column("background", "integer", "NOT NULL DEFAULT 0", "1 when it counts against the daily budget."),
        Column("session_id", "text", "NOT NULL DEFAULT ''", "The session of the call."),
        Column("user_id", "text", "NOT NULL DEFAULT ''", "The user of a gateway; empty for the home's owner."),
        Column("provider", "text", "NOT NULL DEFAULT ''", "The service that answered."),
        Column("model", "text", "NOT NULL DEFAULT ''", "The model's name."),
        Column("input_tokens", "integer", "NOT NULL DEFAULT 0", "All input."),
        Column("output_tokens", "integer", "NOT NULL DEFAULT 0", "All output, reasoning included."),
        Column("cache_read_tokens", "integer", "NOT NULL DEFAULT 0", "The part of the input served from a cache."),
        Column("cache_write_tokens", "integer", "NOT NULL DEFAULT 0", "The part of the input written to a cache."),
        Column("reasoning_tokens", "integer", "NOT NULL DEFAULT 0", "The part of the output that was reasoning."),
        Column("estimated", "integer", "NOT NULL DEFAULT 0", "1 when Memoranda counted the tokens, not the service."),
        Column("cost_usd", "real", "", "In US dollars; null when the price is unknown."),
        Column("seconds", "real", "NOT NULL DEFAULT 0", "How long it took."),
        Column("outcome", "text", "NOT NULL", "ok, running, interrupted, or the name of the error."),
        Column("most_tokens", "integer", "NOT NULL DEFAULT 0", "While it runs: the most tokens that it can use."),
        Column("most_usd", "real", "NOT NULL DEFAULT 0", "While it runs: the most that it can cost."),
        Column("until", "real", "", "While it runs: after this time it counts as lost, with its estimate."),
    ),
)


def _remove_user(connection: Connection, user: str) -> None:
    """The ledger keeps what calls cost, without saying for whom."""
    connection.execute("UPDATE calls SET user_id = '', session_id = '' WHERE user_id = ?", (user,))


SCHEMA = Schema(
    version=1,
    name="usage",
    tables=(CALLS,),
    indexes=("CREATE INDEX IF NOT EXISTS idx_calls_at ON calls(background, at)",),
    server=ServerTables(shared_user_tables=(("calls", "user_id"),)),
    forgetting=Forgetting(remove_user=_remove_user),
)
