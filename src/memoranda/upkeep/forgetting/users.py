"""Forgets a user of a gateway: conversations, curated memory, skills, facts, deliveries, and what labels name them."""

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.external.holographic.shared_facts import cache_path
from memoranda.search.recall_log import erase_calls, hook_calls_path, read_calls, recalls_path
from memoranda.support.home import encode_user_id
from memoranda.upkeep.forgetting.home_files import COMPANIONS
from memoranda.upkeep.forgetting.report import ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope, memories_of
from memoranda.upkeep.forgetting.small_databases import PartTables


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
        return found + self._tables.find_rows_of_user()

    def forget(self) -> None:
        """Remove all of it; can be repeated."""
        root = self._home.root
        with closing(memories_of(self._home, self._server_url)) as memories:
            memories.delete(self._user)
        self._tables.remove_user()
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
        path = cache_path(self._home.root, self._user)
        return [path] if path.exists() else []

    def _recalls(self) -> list[Path]:
        path = recalls_path(self._home.root, self._user)
        return [path] if path.exists() else []

    def _is_own_call(self, call: Mapping[str, Any]) -> bool:
        return bool(call.get("user") == self._user)
