"""The tables of the ledger, each column with its meaning."""

from memoranda.db.schema import Column, Schema, Table

APPLICATION_ID = int.from_bytes(b"MemU", "big")
FILE_NAME = "usage.db"

CALLS = Table(
    "calls",
    "One row per call of a model; no text of anybody's.",
    (
        Column("id", "numbered", "", "Order of writing."),
        Column("key", "text", "NOT NULL UNIQUE", "The call itself: written twice, it is one row."),
        Column("at", "real", "NOT NULL", "When it began, in seconds since 1970."),
        Column("purpose", "text", "NOT NULL", "chat, compression, review, delegation, search-summary …"),
        Column("background", "integer", "NOT NULL DEFAULT 0", "1 when it counts against the daily budget."),
        Column("session_id", "text", "NOT NULL DEFAULT ''", "For which session."),
        Column("user_id", "text", "NOT NULL DEFAULT ''", "For which user of a gateway; empty for the home's owner."),
        Column("provider", "text", "NOT NULL DEFAULT ''", "Who served it."),
        Column("model", "text", "NOT NULL DEFAULT ''", "The model's name."),
        Column("input_tokens", "integer", "NOT NULL DEFAULT 0", "Everything that was sent."),
        Column("output_tokens", "integer", "NOT NULL DEFAULT 0", "Everything that came back, reasoning included."),
        Column("cache_read_tokens", "integer", "NOT NULL DEFAULT 0", "The part of the input served from a cache."),
        Column("cache_write_tokens", "integer", "NOT NULL DEFAULT 0", "The part of the input written to a cache."),
        Column("reasoning_tokens", "integer", "NOT NULL DEFAULT 0", "The part of the output that was reasoning."),
        Column("estimated", "integer", "NOT NULL DEFAULT 0", "1 when nobody counted the tokens but we."),
        Column("cost_usd", "real", "", "In US dollars; null when the price is not known."),
        Column("seconds", "real", "NOT NULL DEFAULT 0", "How long it took."),
        Column("outcome", "text", "NOT NULL", "ok, running, interrupted, or the name of the error."),
        Column("most_tokens", "integer", "NOT NULL DEFAULT 0", "While it runs: more than this it cannot use."),
        Column("most_usd", "real", "NOT NULL DEFAULT 0", "While it runs: more than this it cannot cost."),
        Column("until", "real", "", "While it runs: after that it is taken for lost, and its estimate stands."),
    ),
)
SCHEMA = Schema(
    version=1,
    tables=(CALLS,),
    indexes=("CREATE INDEX IF NOT EXISTS idx_calls_at ON calls(background, at)",),
)
