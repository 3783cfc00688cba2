"""Forgets a user of a gateway: conversations, curated memory, skills, facts, deliveries, and what labels name them."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memoranda.forgetting.home_files import COMPANIONS, is_database
from memoranda.forgetting.report import ForgetPlace
from memoranda.forgetting.scope import ForgetScope
from memoranda.providers.outbox import Outbox
from memoranda.support.home import encode_user_id

# The ledger keeps what calls cost, without saying for whom.
_LEDGER = "usage.db"
_BUSY_TIMEOUT = 10.0


class UserFiles:
    """What a home keeps of one user outside the record."""

    def __init__(self, scope: ForgetScope) -> None:
        assert scope.user is not None
        self._user = scope.user
        self._home = scope.home

    def find(self) -> list[ForgetPlace]:
        root = self._home.root
        found = [
            ForgetPlace("user", path.relative_to(root).as_posix(), 1, "remove")
            for path in (*self._directories(), *self._facts())
        ]
        with closing(Outbox(root)) as outbox:
            backlog = outbox.backlog(None, self._user)
        waiting = backlog.waiting + backlog.parked
        found += [ForgetPlace("outbox", "deliveries", waiting, "remove")] if waiting else []
        for path, connection in self._databases():
            rows = sum(
                connection.execute(f'SELECT count(*) FROM "{table}" WHERE user_id = ?', (self._user,)).fetchone()[0]
                for table in _tables_of_users(connection)
            )
            found += [ForgetPlace("databases", path.name, rows, "remove")] if rows else []
        return found

    def forget(self) -> None:
        """Remove all of it; can be repeated."""
        root = self._home.root
        with closing(Outbox(root)) as outbox:
            outbox.drop(None, self._user)
        for path, connection in self._databases():
            connection.execute("PRAGMA secure_delete=1")
            connection.execute("BEGIN IMMEDIATE")
            for table in _tables_of_users(connection):
                if path.name == _LEDGER:
                    connection.execute(
                        f"UPDATE \"{table}\" SET user_id = '', session_id = '' WHERE user_id = ?", (self._user,)
                    )
                else:
                    connection.execute(f'DELETE FROM "{table}" WHERE user_id = ?', (self._user,))
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for directory in self._directories():
            shutil.rmtree(directory)
        for database in self._facts():
            for ending in ("", *COMPANIONS):
                Path(f"{database}{ending}").unlink(missing_ok=True)

    def _directories(self) -> list[Path]:
        folder, root = encode_user_id(self._user), self._home.root
        found = [self._home.memories(self._user), self._home.skills(self._user), root / "byterover-users" / folder]
        return [path for path in found if path.is_dir()]

    def _facts(self) -> list[Path]:
        path = self._home.root / f"holographic-{encode_user_id(self._user)}.db"
        return [path] if path.exists() else []

    def _databases(self) -> Iterator[tuple[Path, sqlite3.Connection]]:
        """The databases with rows of users, except the record and the outbox."""
        for path in sorted(self._home.root.glob("*.db")):
            if not path.name.startswith(("state.", "outbox.", "holographic")) and is_database(path):
                with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)) as connection:
                    yield path, connection


def _tables_of_users(connection: sqlite3.Connection) -> list[str]:
    tables = [row[1] for row in connection.execute("PRAGMA table_list").fetchall() if row[2] == "table"]
    return [
        table
        for table in tables
        if "user_id" in {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall()}
    ]
