"""The database of the service: `service.db` in the home, or the server that has the record."""

from collections import Counter
from pathlib import Path

from memoranda.home.access.schema import APPLICATION_ID, FILE_NAME, SCHEMA
from memoranda.storage.lazy_database import LazyDatabase


class ServiceDatabase(LazyDatabase):
    """Opens the engine with the service's tables at its first use."""

    def __init__(self, home: Path, record: Path | str = "") -> None:
        """`record` is where the record is: if it is on a server, so are these tables, for all nodes of a fleet."""
        server_url = record if isinstance(record, str) else ""
        super().__init__(home / FILE_NAME, SCHEMA, APPLICATION_ID, server_url=server_url)

    def connection_statistics(self) -> Counter[str]:
        """What this process counts about its connections to servers; empty if the record is in a file."""
        if not self.server_url:
            return Counter()
        from memoranda.storage.postgres.pool import sum_statistics  # noqa: PLC0415

        return sum_statistics()
