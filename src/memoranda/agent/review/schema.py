"""The tables of the review schedule, and the check of its rows."""

from collections.abc import Iterator

from memoranda.storage.connection import Connection
from memoranda.storage.schema import Column, RowIssue, Schema, ServerTables, Table

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
_STATES = ("due", "running", "done", "given up")


def _check_rows(connection: Connection, on_server: bool) -> Iterator[RowIssue]:
    """Reviews that will never run."""
    (unknown,) = connection.execute(
        f"SELECT count(*) FROM reviews WHERE state NOT IN (?{', ?' * (len(_STATES) - 1)})", _STATES
    ).fetchone()
    if unknown:
        yield RowIssue(
            "warning",
            f"{unknown:,} reviews in an unknown state, which never run",
            "set their state to 'due' in the table reviews, or delete these rows",
        )
    if not on_server:
        return
    # A server has the record in the same database.
    (missing,) = connection.execute(
        "SELECT count(*) FROM reviews WHERE state IN ('due', 'running')"
        " AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = reviews.session_id)"
    ).fetchone()
    if missing:
        yield RowIssue(
            "note",
            f"{missing:,} due reviews of sessions that are not in the record",
            "nothing to do; each is given up when it is tried",
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
    check_rows=_check_rows,
)
