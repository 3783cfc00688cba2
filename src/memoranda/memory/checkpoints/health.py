"""Checks the file of checkpoints: damage, and checkpoints whose values are missing."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from memoranda.memory.checkpoints.schema import APPLICATION_ID, FILE_NAME, SCHEMA
from memoranda.storage.engine import Engine
from memoranda.storage.health import CheckedDatabase, plain_store
from memoranda.storage.sqlite.database import Database
from memoranda.support.health_issues import HealthIssue


def checked_checkpoints(home: Path) -> CheckedDatabase:
    """The file of a home; a damaged one is rebuilt from all rows that can still be read."""
    path = home / FILE_NAME

    def check_content(database: Database) -> Iterator[HealthIssue]:
        if missing := count_incomplete(database):
            yield HealthIssue(
                "error",
                path,
                f"has {missing:,} checkpoints of which a value is missing",
                "restore the file from a backup, or resume those threads from an earlier checkpoint",
            )

    return replace(plain_store(path, APPLICATION_ID, SCHEMA, "rows of checkpoints"), check_content=check_content)


def check_server_checkpoints(setting: Path, engine: Engine) -> Iterator[HealthIssue]:
    """Check the tables of a server; `setting` is the file that names it."""
    if missing := count_incomplete(engine):
        yield HealthIssue(
            "error",
            setting,
            f"names a server with {missing:,} checkpoints of which a value is missing",
            "restore the tables from a backup of the server, or resume those threads from an earlier checkpoint",
        )


def count_incomplete(database: Database | Engine) -> int:
    """How many checkpoints name a value that is not stored."""
    with database.reading() as connection:
        rows = connection.execute("SELECT user_id, thread_id, value_id FROM checkpoint_values")
        stored = {(user, thread, value_id) for user, thread, value_id in rows}
        found = connection.execute("SELECT user_id, thread_id, channels FROM checkpoints")
        return sum(
            any((user, thread, value_id) not in stored for value_id in json.loads(channels).values())
            for user, thread, channels in found
        )
