"""The database of checkpoints: `checkpoints.db` in the home, or the server that has the record."""

from pathlib import Path

from memoranda.memory.checkpoints.schema import APPLICATION_ID, FILE_NAME, SCHEMA
from memoranda.storage.home_database import HomeDatabase


def open_checkpoints(home: Path, record: Path | str = "") -> HomeDatabase:
    """The database, opened or created at its first use; on the server of the record, if `record` is a URL."""
    return HomeDatabase(home / FILE_NAME, SCHEMA, APPLICATION_ID, record)
