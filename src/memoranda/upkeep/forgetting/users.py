"""Forgets a user of a gateway: conversations, curated memory, skills, facts, deliveries, and what labels name them."""

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.external.holographic.user_facts import facts_path
from memoranda.memory.checkpoints.passages import CheckpointPassages
from memoranda.memory.checkpoints.store import CheckpointStore
from memoranda.search.recall_log import erase_calls, hook_calls_path, read_calls, recalls_path
from memoranda.storage.home_database import FILE_NAME
from memoranda.storage.salvage.rebuild import is_database
from memoranda.support.home import encode_user_id
from memoranda.upkeep.forgetting.home_files import COMPANIONS
from memoranda.upkeep.forgetting.report import ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope, checkpoints_of, memories_of
from memoranda.upkeep.forgetting.small_databases import PartTables

_BUSY_TIMEOUT = 10.0


class UserFiles:
    """What a home keeps of one user outside the record."""

    def __init__(self, scope: ForgetScope) -> None:
        assert scope.user is not None
        self._user = scope.user
        self._home = scope.home
        self._server_url = scope.server_url
        self._tables = PartTables(scope)

    def find(self) -> list[ForgetPlace]:
        root = self._home.root
        found = [
            ForgetPlace("user", path.relative_to(root).as_posix(), 1, "remove")
            for path in (*self._directories(), *self._facts(), *self._recalls())
        ]
        calls = sum(map(self._is_own_call, read_calls(hook_calls_path(root))))
        found += [ForgetPlace("logs", "calls of hooks", calls, "remove")] if calls else []
        with closing(memories_of(self._home, self._server_url)) as memories:
            storage = memories.open(self._user).storage
            # A directory is listed with the others.
            if not storage.directory.is_absolute() and storage.exists():
                found.append(ForgetPlace("user", storage.directory.as_posix(), 1, "remove"))
        with closing(checkpoints_of(self._home, self._server_url)) as checkpoints:
            threads = CheckpointPassages(CheckpointStore(checkpoints, self._user)).count()
        found += [ForgetPlace("checkpoints", "threads", threads, "remove")] if threads else []
        found += [
            ForgetPlace("databases", table, count, "remove")
            for table, count in self._tables.count_rows_of_user().items()
        ]
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
        with closing(memories_of(self._home, self._server_url)) as memories:
            memories.delete(self._user)
        with closing(checkpoints_of(self._home, self._server_url)) as checkpoints:
            CheckpointPassages(CheckpointStore(checkpoints, self._user)).delete_all()
        self._tables.remove_user()
        for _, connection in self._databases():
            connection.execute("PRAGMA secure_delete=1")
            connection.execute("BEGIN IMMEDIATE")
            for table in _tables_of_users(connection):
                connection.execute(f'DELETE FROM "{table}" WHERE user_id = ?', (self._user,))
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for directory in self._directories():
            shutil.rmtree(directory)
        for database in self._facts():
            for ending in ("", *COMPANIONS):
                Path(f"{database}{ending}").unlink(missing_ok=True)
            database.with_suffix(".lock").unlink(missing_ok=True)
        recalls_path(root, self._user).unlink(missing_ok=True)
        erase_calls(hook_calls_path(root), self._is_own_call)

    def _directories(self) -> list[Path]:
        folder, root = encode_user_id(self._user), self._home.root
        found = [self._home.memories(self._user), self._home.skills(self._user), root / "byterover-users" / folder]
        return [path for path in found if path.is_dir()]

    def _facts(self) -> list[Path]:
        root = self._home.root
        paths = [
            facts_path(root, self._user),
            *([facts_path(root, self._user, self._server_url)] if self._server_url else []),
        ]
        return [path for path in paths if path.exists()]

    def _recalls(self) -> list[Path]:
        path = recalls_path(self._home.root, self._user)
        return [path] if path.exists() else []

    def _is_own_call(self, call: Mapping[str, Any]) -> bool:
        return bool(call.get("user") == self._user)

    def _databases(self) -> Iterator[tuple[Path, sqlite3.Connection]]:
        """The databases with rows of users, except the record, `home.db` and checkpoints."""
        stores = ("state.", "checkpoints.", "holographic", FILE_NAME)
        for path in sorted(self._home.root.glob("*.db")):
            if not path.name.startswith(stores) and path.stat().st_size and is_database(path):
                with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)) as connection:
                    yield path, connection


def _tables_of_users(connection: sqlite3.Connection) -> list[str]:
    tables = [row[1] for row in connection.execute("PRAGMA table_list").fetchall() if row[2] == "table"]
    return [
        table
        for table in tables
        if "user_id" in {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall()}
    ]
