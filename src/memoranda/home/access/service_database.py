"""The database of the service: tables in `home.db`, or on the server that has the record.

Besides its tables, all processes of a service share two things in it: a secret for signatures, and which logins to the
viewer were ended before their time.
"""

import secrets
import time
from collections import Counter
from pathlib import Path

from memoranda.home.access.schema import SCHEMA
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.state_meta import add_meta, drop_meta, read_meta


class ServiceDatabase(HomeDatabase):
    """Opens the engine with the service's tables at its first use."""

    def __init__(self, home: Path, record: Path | str = "") -> None:
        """`record` is where the record is: if it is on a server, so are these tables, for all nodes of a fleet."""
        server_url = record if isinstance(record, str) else ""
        super().__init__(home, SCHEMA, server_url=server_url)

    def connection_statistics(self) -> Counter[str]:
        """What this process counts about its connections to servers; empty if the record is in a file."""
        if not self.server_url:
            return Counter()
        from memoranda.storage.postgres.pool import sum_statistics  # noqa: PLC0415

        return sum_statistics()


_KEY = "service.signing_secret"


def load_or_create_secret(database: ServiceDatabase) -> bytes:
    """Returns the secret; the first process that asks creates it. Without a database it lasts as long as the process.

    Reading must not create a database.
    """
    if not database.exists():
        return secrets.token_bytes(32)
    with database.open().writing() as connection:
        add_meta(connection, _KEY, secrets.token_hex(32))
        stored = read_meta(connection, _KEY)
    return bytes.fromhex(stored or "")


_PREFIX = "viewer.ended_login."


class EndedLogins:
    """The ids of ended logins, in the service's database; without one there is a single process, which knows them."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    def add(self, login_id: str, until: float) -> None:
        """Store that a login has ended; `until` is when it would have ended by itself."""
        if not self._database.exists():
            return
        with self._database.open().writing() as connection:
            rows = connection.execute("SELECT key, value FROM state_meta WHERE key LIKE ?", (f"{_PREFIX}%",)).fetchall()
            for key, value in rows:
                if float(value) < time.time():
                    drop_meta(connection, key)
            add_meta(connection, _PREFIX + login_id, str(until))

    def has(self, login_id: str) -> bool:
        """Whether a login has ended."""
        if not self._database.exists():
            return False
        with self._database.open().reading() as connection:
            return read_meta(connection, _PREFIX + login_id) is not None
