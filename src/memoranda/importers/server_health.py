"""Checks the log of imports on a server: whether every import can be undone and continued."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memoranda.importers.import_schema import SERVER_ITEMS, imports_database
from memoranda.storage.connection import Connection
from memoranda.support.health_issues import HealthIssue

_LONGEST_IMPORT = 86_400.0


def check_server_imports(home: Path, setting: Path, url: str) -> Iterator[HealthIssue]:
    """Report damaged rows and imports without an end; `setting` is the file that names the server."""
    with (
        closing(imports_database(home, url)) as database,
        database.open().acting_for(None, everyone=True).reading() as connection,
    ):
        (lost,) = connection.execute(
            "SELECT count(*) FROM import_parts p WHERE NOT EXISTS (SELECT 1 FROM imports i WHERE i.id = p.import_id)"
        ).fetchone()
        (killed,) = connection.execute(
            "SELECT count(*) FROM imports WHERE ended IS NULL AND began < ?", (time.time() - _LONGEST_IMPORT,)
        ).fetchone()
        damaged = [number for number, sessions in _lists(connection) if not _is_list(sessions)]
    if lost:
        yield HealthIssue(
            "warning",
            setting,
            f"names a server that has {lost:,} parts of imports without their import, which cannot be undone",
            "restore the table imports from a backup of the server, or delete those sessions one by one",
        )
    if killed:
        yield HealthIssue(
            "note",
            setting,
            f"names a server that has {killed:,} imports without an end: they were killed",
            "nothing to do; the next import of the same user completes their log",
        )
    if damaged:
        yield HealthIssue(
            "warning",
            setting,
            f"names a server that has {len(damaged):,} imported files with an unreadable list of sessions",
            "delete these rows; the files are read again, and nothing is added twice",
            lambda: _delete(home, url, damaged),
            harmless=True,
        )


def _lists(connection: Connection) -> list[tuple[int, str]]:
    rows = connection.execute(f"SELECT id, sessions FROM {SERVER_ITEMS}").fetchall()
    return [(number, sessions) for number, sessions in rows]


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _delete(home: Path, url: str, numbers: list[int]) -> str:
    with (
        closing(imports_database(home, url)) as database,
        database.open().acting_for(None, everyone=True).writing() as connection,
    ):
        connection.executemany(f"DELETE FROM {SERVER_ITEMS} WHERE id = ?", [(number,) for number in numbers])
    return f"{len(numbers):,} files are read again by the next import"
