"""Memoranda's session store under the names that the tests of Hermes's store use, so that they can run against it.

It translates names, arguments and results, and implements no behaviour. A test that calls something without a
counterpart fails; `classes` says why it may.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from memoranda.errors import SessionError
from memoranda.home.session_db import SessionDB as Store
from memoranda.memory.record.schema import VERSION as SCHEMA_VERSION
from memoranda.memory.record.sessions import tidy

__all__ = ["SCHEMA_SQL", "SCHEMA_VERSION", "SessionDB", "time"]

SCHEMA_SQL = ""
# What Memoranda derives from the start of a session and its messages, which tests change with SQL.
_DERIVE = (
    "UPDATE sessions SET last_active ="
    " COALESCE((SELECT max(timestamp) FROM messages WHERE session_id = sessions.id), started_at)",
    "UPDATE sessions SET active_hour = CAST(last_active / 3600 AS INTEGER)",
)
_DERIVE_COUNT = "UPDATE sessions SET own_message_count = message_count"
_FILTERS = {"title_like": "title", "model_like": "model"}
_WORDINGS = {" is taken by ": "already in use", "may have at most": "too long"}

Row = dict[str, Any]
_Result = TypeVar("_Result")


class Connection:
    """The connection with which tests arrange rows and look at them; every statement is committed at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False, timeout=10)
        self._connection.row_factory = sqlite3.Row

    def execute(self, statement: str, values: Iterable[Any] = ()) -> Any:
        """Run a statement, and derive again what Memoranda derives."""
        if statement.startswith("PRAGMA foreign_keys"):
            # Each connection has its own value: the test asks for that of the store.
            with self._store.engine.writing() as connection:
                return connection.execute(statement)
        cursor = self._connection.execute(statement, tuple(values))
        if statement.startswith("UPDATE"):
            derived = (*_DERIVE, _DERIVE_COUNT) if "message_count" in statement else _DERIVE
            for derive in derived:
                self._connection.execute(derive)
        return cursor

    def commit(self) -> None:
        """Do nothing: no statement waits for a commit."""

    def close(self) -> None:
        self._connection.close()


class SessionDB:
    """A store whose methods have the names and arguments of Hermes; any other attribute is the store's own."""

    def __init__(self, db_path: Path | str | None = None, **options: Any) -> None:
        self._store = Store(db_path, **options)
        self._conn = Connection(self._store)
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        self._conn.close()
        self._store.close()

    def _execute_write(self, change: Callable[[Connection], Any]) -> Any:
        return change(self._conn)

    @staticmethod
    def sanitize_title(title: str | None) -> str | None:
        return _reword(lambda: tidy(title or ""))

    def create_session(self, session_id: str, source: str, **fields: Any) -> str:
        return self._store.create_session(session_id, source, **fields)

    def ensure_session(self, session_id: str, source: str = "unknown", **fields: Any) -> None:
        self._store.create_session(session_id, source, **fields)

    def get_session(self, session_id: str) -> Row | None:
        return _as_hermes(self._store.get_session(session_id))

    def update_system_prompt(self, session_id: str, system_prompt: str) -> None:
        self._store.update_session(session_id, system_prompt=system_prompt)

    def update_session_model(self, session_id: str, model: str) -> None:
        self._store.update_session(session_id, model=model)

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        return _reword(lambda: self._store.set_session_title(session_id, title))

    def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        return self._store.get_session_title(session_id) is None and self.set_session_title(session_id, title)

    def get_session_by_title(self, title: str) -> Row | None:
        exact, _ = self._store.list_titled(title)
        return self.get_session(exact[0].session_id) if exact else None

    def search_sessions(self, source: str | None = None, limit: int = 20, offset: int = 0) -> list[Row]:
        return self.list_sessions_rich(source=source, limit=limit, offset=offset)

    def search_sessions_by_id(self, query: str, limit: int = 20, include_archived: bool = True) -> list[Row]:
        found = self._store.search_sessions_by_id(query, limit, include_archived=include_archived)
        return [_as_hermes(row) or {} for row in found]

    def list_sessions_rich(self, compact_rows: bool = False, **options: Any) -> list[Row]:
        rows = [_as_hermes(row) or {} for row in self._store.list_sessions_rich(**options)]
        hidden = {"system_prompt"} if compact_rows else set()
        return [{name: value for name, value in row.items() if name not in hidden} for row in rows]

    def session_count(self, include_archived: bool = False, archived_only: bool = False, **filters: Any) -> int:
        archived = True if archived_only else None if include_archived else False
        return self._store.session_count(archived=archived, **filters)

    def message_count(self, session_id: str | None = None) -> int:
        if session_id is None:
            return int(self._store.statistics()["messages"])
        row = self._store.get_session(session_id)
        return int(row["message_count"]) if row else 0

    def replace_messages(self, session_id: str, messages: Iterable[Mapping[str, Any]]) -> None:
        self._store.clear_messages(session_id)
        self._store.append_messages(session_id, list(messages))

    def get_resume_conversations(self, session_id: str) -> tuple[list[Row], list[Row]]:
        read = self._store.get_messages_as_conversation
        return read(session_id, repair_alternation=True), read(session_id, include_ancestors=True)

    def list_prune_candidates(self, older_than_days: float | None = None, **filters: Any) -> list[Row]:
        return self._store.list_prune_candidates(older_than_days or 0, **_filters(filters))

    def prune_sessions(self, older_than_days: float | None = 90, **filters: Any) -> int:
        return _reword(lambda: self._store.prune_sessions(older_than_days or 0, **_filters(filters)))

    def archive_sessions(self, older_than_days: float | None = None, **filters: Any) -> int:
        return self._store.archive_sessions(older_than_days or 0, **_filters(filters))

    def maybe_auto_prune_and_vacuum(
        self, retention_days: float = 90, min_interval_hours: float = 24, vacuum: bool = True
    ) -> Row:
        count = self._store.prune_when_due(retention_days, interval_hours=min_interval_hours, vacuum=vacuum)
        return {"skipped": count is None, "pruned": count or 0, "vacuumed": bool(count) and vacuum}

    def import_sessions(self, sessions: list[Row]) -> Row:
        report = self._store.import_sessions(sessions)
        return {
            "ok": report.ok,
            "imported": len(report.imported),
            "skipped": len(report.skipped),
            "skipped_ids": report.skipped,
            "detached": len(report.detached),
            "errors": report.errors,
        }


def _as_hermes(row: Row | None) -> Row | None:
    """A session with its settings as JSON text, and with the columns that only Hermes has."""
    if row is None:
        return None
    settings = row["model_config"]
    absent = dict.fromkeys(("cwd", "git_branch", "git_repo_root"))
    return absent | row | {"model_config": None if settings is None else json.dumps(settings)}


def _filters(filters: Mapping[str, Any]) -> Row:
    return {_FILTERS.get(name, name): value for name, value in filters.items()}


def _reword(call: Callable[[], _Result]) -> _Result:
    """Call, and refuse with the exception and the wording that the tests expect."""
    try:
        return call()
    except SessionError as error:
        if "cannot be filtered by" in str(error):
            raise TypeError(str(error)) from error
        words = [theirs for ours, theirs in _WORDINGS.items() if ours in str(error)]
        raise ValueError(words[0] if words else str(error)) from error
