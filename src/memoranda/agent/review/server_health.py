"""Checks the reviews on a server."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memoranda.agent.review.schema import APPLICATION_ID, FILE_NAME, SCHEMA
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.support.health_issues import HealthIssue

_STATES = ("due", "running", "done", "given up")


def check_server_reviews(home: Path, setting: Path, url: str) -> Iterator[HealthIssue]:
    """Report reviews that will never run; `setting` is the file that names the server."""
    with (
        closing(LazyDatabase(home / FILE_NAME, SCHEMA, APPLICATION_ID, server_url=url)) as database,
        database.open().acting_for(None, everyone=True).reading() as connection,
    ):
        (unknown,) = connection.execute(
            f"SELECT count(*) FROM reviews WHERE state NOT IN (?{', ?' * (len(_STATES) - 1)})", _STATES
        ).fetchone()
        (missing,) = connection.execute(
            "SELECT count(*) FROM reviews WHERE state IN ('due', 'running')"
            " AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = reviews.session_id)"
        ).fetchone()
    if unknown:
        yield HealthIssue(
            "warning",
            setting,
            f"names a server that has {unknown:,} reviews in an unknown state, which never run",
            "set their state to 'due' in the table reviews, or delete these rows",
        )
    if missing:
        yield HealthIssue(
            "note",
            setting,
            f"names a server that has {missing:,} due reviews of sessions that are not in the record",
            "nothing to do; each is given up when it is tried",
        )
