"""Sessions in OpenCode's database (`opencode.db`, in version 1.2 and later): tables of sessions, messages and parts."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import get_text
from memoranda.importers.opencode.messages import StoredMessage, StoredSession, said_in, said_in_row, session_of
from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_databases import database_at, open_database, rows, tables
from memoranda.importers.source_files import reread_time

OF_DATABASE = "session "
_UNREADABLE = "database"
_NEWER = "session_message"
_NEEDED = {"session": {"id", "time_updated"}, "message": {"id", "session_id", "data"}, "part": {"message_id", "data"}}
_COLUMNS = ("title", "directory", "parent_id", "version", "time_created")
_SESSIONS = "SELECT id, time_updated FROM session ORDER BY id DESC"
_SIZE = (
    "SELECT (SELECT coalesce(sum(length(data)), 0) FROM part WHERE session_id = :id)"
    " + (SELECT coalesce(sum(length(data)), 0) FROM message WHERE session_id = :id)"
)


class SessionDatabases:
    """Finds sessions in databases; what has not changed, a database or a session, is not looked into again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[ImportItem, list[tuple[str, float, int]]]] = {}
        self._sizes: dict[tuple[Path, str], tuple[float, int]] = {}

    def sessions(self, file: Path) -> list[ImportItem]:
        """An item for each session; a database that cannot be read is one by itself, so that this is said."""
        item = database_at(file, _UNREADABLE)
        if item is None:
            return []
        known = self._known.get(file)
        if known is None or known[0] != item:
            try:
                with open_database(file) as connection:
                    _check(connection)
                    found = [self._listed(connection, item, row) for row in connection.execute(_SESSIONS).fetchall()]
            except OSError:
                return [ImportItem(file, item.size, item.modified_at, f"{OF_DATABASE}?")]
            known = self._known[file] = (item, found)
        # Names of sessions are made of the time, counted down: the oldest is the largest.
        return [ImportItem(file, size, reread_time(at), f"{OF_DATABASE}{name}") for name, at, size in known[1]]

    def _listed(self, connection: sqlite3.Connection, item: ImportItem, row: tuple[Any, ...]) -> tuple[str, float, int]:
        name, updated = str(row[0]), row[1]
        at = updated / 1000 if isinstance(updated, int | float) else item.modified_at
        known = self._sizes.get((item.file, name))
        if known is None or known[0] != at:
            size = connection.execute(_SIZE, {"id": row[0]}).fetchone()[0]
            known = self._sizes[item.file, name] = (at, size if isinstance(size, int) else 0)
        return name, at, known[1]


def read(item: ImportItem) -> Iterator[StoredSession | StoredMessage | Problem]:
    """One session of a database."""
    host_id = item.label.removeprefix(OF_DATABASE)
    try:
        with open_database(item.file) as connection:
            columns = _check(connection)
            wanted = [name for name in _COLUMNS if name in columns]
            query = f"SELECT {', '.join(['id', *wanted])} FROM session WHERE id = ?"
            row = connection.execute(query, (host_id,)).fetchone()
            if row is None:
                yield Problem(item.file, None, f"session {host_id} is not there any more")
                return
            yield _session(dict(zip(wanted, row[1:], strict=True)), host_id)
            yield from _messages(item.file, connection, host_id)
            if _NEWER in tables(connection):
                yield from _newer_messages(item.file, connection, host_id)
    except OSError as error:
        yield Problem(item.file, None, str(error), unread=True)


def _check(connection: sqlite3.Connection) -> set[str]:
    """The columns of the sessions, when this is a database of OpenCode."""
    there = tables(connection)
    for table, columns in _NEEDED.items():
        if not columns <= there.get(table, set()):
            raise OSError(f"not a database of OpenCode as it is known: the table {table} is missing or another one")
    return there["session"]


def _session(row: dict[str, Any], host_id: str) -> StoredSession:
    info = {**row, "id": host_id, "parentID": row.get("parent_id"), "time": {"created": row.get("time_created")}}
    return session_of(info, host_id)


def _messages(file: Path, connection: sqlite3.Connection, host_id: str) -> Iterator[StoredMessage | Problem]:
    names = [
        row[0] for row in connection.execute("SELECT id FROM message WHERE session_id = ? ORDER BY id", (host_id,))
    ]
    for name in names:
        row = connection.execute("SELECT data FROM message WHERE id = ?", (name,)).fetchone()
        info = _object(row[0]) if row else None
        if info is None:
            yield Problem(file, None, f"message {name} of session {host_id} is not a JSON object")
            continue
        parts: list[dict[str, Any]] = []
        for part_id, data in rows(connection, "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (name,)):
            part = _object(data)
            if part is None:
                yield Problem(file, None, f"part {part_id} of message {name} is not a JSON object")
            else:
                parts.append({**part, "id": str(part_id)})
        yield said_in({**info, "id": get_text(info, "id") or name}, str(name), parts)


def _newer_messages(file: Path, connection: sqlite3.Connection, host_id: str) -> Iterator[StoredMessage | Problem]:
    query = f"SELECT id, type, time_created, data FROM {_NEWER} WHERE session_id = ? ORDER BY seq"
    for name, kind, at, data in rows(connection, query, (host_id,)):
        info = _object(data)
        if info is None:
            yield Problem(file, None, f"message {name} of session {host_id} is not a JSON object")
        else:
            yield said_in_row(str(kind), str(name), at, info)


def _object(data: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
