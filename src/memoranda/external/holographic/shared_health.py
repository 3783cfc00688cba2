"""Checks the facts on a server: whether every node sees all of them."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memoranda.external.holographic.server_schema import SERVER_SCHEMA
from memoranda.storage.connection import Connection
from memoranda.storage.lazy_database import open_server_engine
from memoranda.support.health_issues import HealthIssue

# Nodes ask for what came after the number they know, so a row with a higher one than the user's counter is overlooked.
_OVERLOOKED = (
    "SELECT f.user_id, max(f.revision), count(*) FROM shared_facts f"
    " LEFT JOIN fact_revisions r ON r.user_id = f.user_id"
    " WHERE f.revision > COALESCE(r.revision, 0) GROUP BY f.user_id ORDER BY f.user_id"
)


def check_shared_facts(setting: Path, url: str) -> Iterator[HealthIssue]:
    """Report facts that nodes overlook, and facts that cannot be read; `setting` is the file that names the server."""
    with closing(open_server_engine(url, SERVER_SCHEMA)) as server:
        engine = server.acting_for(None, everyone=True)
        with engine.reading() as connection:
            overlooked = connection.execute(_OVERLOOKED).fetchall()
            unreadable = _count_unreadable(connection)
    if overlooked:
        yield HealthIssue(
            "error",
            setting,
            f"names a server that has {sum(row[2] for row in overlooked):,} facts of {len(overlooked):,} users that "
            "nodes overlook, because the number of the last change is too low",
            "raise that number",
            lambda: _raise_revisions(url),
        )
    if unreadable:
        yield HealthIssue(
            "error",
            setting,
            f"names a server that has {unreadable:,} facts whose names of entities cannot be read",
            "set given_names of those rows of shared_facts to '[]', or restore them from a backup of the server",
        )


def _count_unreadable(connection: Connection) -> int:
    rows = connection.execute("SELECT given_names FROM shared_facts WHERE given_names <> '' AND removed = 0").fetchall()
    return sum(not _is_list(text) for (text,) in rows)


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _raise_revisions(url: str) -> str:
    with (
        closing(open_server_engine(url, SERVER_SCHEMA)) as server,
        server.acting_for(None, everyone=True).writing() as connection,
    ):
        rows = connection.execute(_OVERLOOKED).fetchall()
        connection.executemany(
            "INSERT INTO fact_revisions (user_id, revision) VALUES (?, ?)"
            " ON CONFLICT (user_id) DO UPDATE SET revision = excluded.revision",
            [(user, revision) for user, revision, _ in rows],
        )
    return f"the facts of {len(rows):,} users are complete on every node again"
