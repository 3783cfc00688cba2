"""The tables of the review schedule, and the check of the reviews on a server."""

from collections.abc import Iterator
from pathlib import Path

from memoranda.storage.home_database import FILE_NAME, HomeDatabase
from memoranda.storage.lazy_database import opened_for_everyone
from memoranda.storage.schema import Column, Schema, ServerTables, Table
from memoranda.support.health_issues import HealthIssue

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


_STATES = ("due", "running", "done", "given up")


def check_reviews(home: Path, setting: Path, url: str = "") -> Iterator[HealthIssue]:
    """Report reviews that will never run; `setting` is the file that names the server, if one has them."""
    path, has = (setting, "names a server that has") if url else (home / FILE_NAME, "has")
    with opened_for_everyone(HomeDatabase(home, SCHEMA, server_url=url)) as engine, engine.reading() as connection:
        (unknown,) = connection.execute(
            f"SELECT count(*) FROM reviews WHERE state NOT IN (?{', ?' * (len(_STATES) - 1)})", _STATES
        ).fetchone()
        # A server has the record in the same database.
        (missing,) = (
            (0,)
            if not url
            else connection.execute(
                "SELECT count(*) FROM reviews WHERE state IN ('due', 'running')"
                " AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = reviews.session_id)"
            ).fetchone()
        )
    if unknown:
        yield HealthIssue(
            "warning",
            path,
            f"{has} {unknown:,} reviews in an unknown state, which never run",
            "set their state to 'due' in the table reviews, or delete these rows",
        )
    if missing:
        yield HealthIssue(
            "note",
            path,
            f"{has} {missing:,} due reviews of sessions that are not in the record",
            "nothing to do; each is given up when it is tried",
        )
