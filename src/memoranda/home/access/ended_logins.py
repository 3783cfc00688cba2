"""Logins to the viewer that were ended before their time, so that every node of a fleet refuses them."""

import time

from memoranda.home.access.service_database import ServiceDatabase

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
                    connection.execute("DELETE FROM state_meta WHERE key = ?", (key,))
            connection.execute(
                "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
                (_PREFIX + login_id, str(until)),
            )

    def has(self, login_id: str) -> bool:
        """Whether a login has ended."""
        if not self._database.exists():
            return False
        with self._database.open().reading() as connection:
            row = connection.execute("SELECT 1 FROM state_meta WHERE key = ?", (_PREFIX + login_id,)).fetchone()
        return row is not None
