"""The database of checkpoints: `checkpoints.db` in the home, or the server that has the record."""

from pathlib import Path

from memoranda.memory.checkpoints.schema import APPLICATION_ID, FILE_NAME, SCHEMA
from memoranda.storage.lazy_database import LazyDatabase


def open_checkpoints(home: Path, record: Path | str = "") -> LazyDatabase:
    """The database, opened or created at its first use; on the server of the record, if `record` is a URL."""
    server_url = record if isinstance(record, str) else ""
    return LazyDatabase(home / FILE_NAME, SCHEMA, APPLICATION_ID, server_url=server_url)
