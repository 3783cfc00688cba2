"""Marks a new SQLite file as Memoranda's, and recognises files of other programs."""

import sqlite3
from pathlib import Path

from memoranda.errors import CorruptStoreError
from memoranda.storage.sqlite.writer_turns import retry


def claim_file(connection: sqlite3.Connection, path: Path, application_id: int, deadline: float) -> None:
    """Set our application id in an empty file; a file with other content belongs to another program."""
    retry(connection, "BEGIN IMMEDIATE", deadline)
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != application_id and (tables or owner):
        connection.execute("ROLLBACK")
        raise CorruptStoreError(f"{path} was not written by Memoranda. It was not changed.")
    connection.execute(f"PRAGMA application_id={application_id}")
    connection.execute("COMMIT")
