"""The tables of the review schedule."""

from memoranda.storage.schema import Column, Schema, ServerTables, Table

APPLICATION_ID = int.from_bytes(b"MemR", "big")
FILE_NAME = "reviews.db"

COUNTERS = Table(
    "counters",
    "User turns since the last review or write of memory and skills, per user.",
    (
        Column("user_id", "text", "PRIMARY KEY", "The user of a gateway; empty for the home's owner."),
        Column(
            "memory_turns",
            "integer",
            "NOT NULL DEFAULT 0",
            "Since the memory tool was used or a review became due.",
        ),
        Column("skill_turns", "integer", "NOT NULL DEFAULT 0", "Since skill_manage was used or a review became due."),
    ),
)
REVIEWS = Table(
    "reviews",
    "One row per review, without any text of the conversation.",
    (
        Column("id", "numbered", "", "Order."),
        Column("created", "real", "NOT NULL", "When it became due, in seconds since 1970."),
        Column("user_id", "text", "NOT NULL DEFAULT ''", "The user whose turns were counted."),
        Column("session_id", "text", "NOT NULL", "The session to review."),
        Column("memory", "integer", "NOT NULL DEFAULT 0", "1 if it looks for memories."),
        Column("skills", "integer", "NOT NULL DEFAULT 0", "1 if it looks for skills."),
        Column("state", "text", "NOT NULL DEFAULT 'due'", "due, running, done, or given up."),
        Column("tries", "integer", "NOT NULL DEFAULT 0", "How often it was started."),
        Column("ended", "real", "", "When it last started or ended."),
        Column("result", "text", "NOT NULL DEFAULT ''", "The result in numbers, or why it failed."),
    ),
)
SCHEMA = Schema(
    version=1,
    name="reviews",
    tables=(COUNTERS, REVIEWS),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_reviews_open ON reviews(user_id, session_id)"
        " WHERE state IN ('due', 'running')",
    ),
    server=ServerTables(user_tables=(("counters", "user_id"), ("reviews", "user_id"))),
)
