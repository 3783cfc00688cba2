"""The tables of the review schedule, each column with its meaning."""

from memoranda.db.schema import Column, Schema, Table

APPLICATION_ID = int.from_bytes(b"MemR", "big")
FILE_NAME = "reviews.db"

COUNTERS = Table(
    "counters",
    "User turns since memory and skills were last looked at, per user.",
    (
        Column("user_id", "text", "PRIMARY KEY", "The user of a gateway; empty for the home's owner."),
        Column("memory_turns", "integer", "NOT NULL DEFAULT 0", "Since the memory tool was used or a review began."),
        Column("skill_turns", "integer", "NOT NULL DEFAULT 0", "Since skill_manage was used or a review began."),
    ),
)
REVIEWS = Table(
    "reviews",
    "One row per review; no text of anybody's.",
    (
        Column("id", "numbered", "", "Order."),
        Column("created", "real", "NOT NULL", "When it became due, in seconds since 1970."),
        Column("user_id", "text", "NOT NULL DEFAULT ''", "Whose turns were counted."),
        Column("session_id", "text", "NOT NULL", "Which conversation is to be reviewed."),
        Column("memory", "integer", "NOT NULL DEFAULT 0", "1 when it looks for memories."),
        Column("skills", "integer", "NOT NULL DEFAULT 0", "1 when it looks for skills."),
        Column("state", "text", "NOT NULL DEFAULT 'due'", "due, running, done, or given up."),
        Column("tries", "integer", "NOT NULL DEFAULT 0", "How often it was begun."),
        Column("ended", "real", "", "When it was last tried."),
        Column("result", "text", "NOT NULL DEFAULT ''", "What came of it, in numbers, or why it failed."),
    ),
)
SCHEMA = Schema(
    version=1,
    tables=(COUNTERS, REVIEWS),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_reviews_open ON reviews(user_id, session_id)"
        " WHERE state IN ('due', 'running')",
    ),
)
