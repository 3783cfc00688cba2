"""Reads sessions from OpenCode's database (`opencode.db`, version 1.2 and later): sessions, messages and parts."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import get_text
from memoranda.importers.opencode.messages import (
    StoredMessage,
    StoredSession,
    message_from_info,
    message_from_row,
    session_from_info,
)
from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_databases import database_at, open_database, rows, tables
from memoranda.importers.source_files import reread_time

SESSION_LABEL = "session "
_UNREADABLE = "database"
_NEWER = "session_message"
_NEEDED = {"session": {"id", "time_updated"}, "message": {"id", "session_id", "data"}, "part": {"message_id", "data"}}
_COLUMNS = ("title", "directory", "parent_id", "version", "time_created")
_SESSIONS = "SELECT id, time_updated FROM session ORDER BY id DESC"
_FAMILY = (
    "WITH RECURSIVE family (id) AS (SELECT :id UNION SELECT s.id FROM session s JOIN family f ON s.parent_id = f.id)"
    " SELECT id, time_updated FROM session WHERE id IN (SELECT id FROM family) ORDER BY id DESC"
)
_SIZE = (
    "SELECT (SELECT coalesce(sum(length(data)), 0) FROM part WHERE session_id = :id)"
    " + (SELECT coalesce(sum(length(data)), 0) FROM message WHERE session_id = :id)"
)


class SessionDatabases:
    """Finds the sessions in databases; does not measure unchanged databases and sessions again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[ImportItem, list[tuple[str, float, int]]]] = {}
        self._sizes: dict[tuple[Path, str], tuple[float, int]] = {}

    def sessions(self, file: Path) -> list[ImportItem]:
        """Return an item for each session; an unreadable database is one item, so that its problem is reported."""
        item = database_at(file, _UNREADABLE)
        if item is None:
            return []
        known = self._known.get(file)
        if known is None or known[0] != item:
            try:
                with open_database(file) as connection:
                    _check_tables(connection)
                    session_rows = connection.execute(_SESSIONS).fetchall()
                    found = [self.measure(connection, item, row) for row in session_rows]
            except OSError:
                return [ImportItem(file, item.size, item.modified_at, f"{SESSION_LABEL}?")]
            known = self._known[file] = (item, found)
        # Session ids are made from the time, counted down, so the oldest session has the largest id.
        return [_session_item(file, *measured) for measured in known[1]]

    def measure(self, connection: sqlite3.Connection, item: ImportItem, row: tuple[Any, ...]) -> tuple[str, float, int]:
        """Return the name of a session, when it was last changed, and its size."""
        name, updated = str(row[0]), row[1]
        at = updated / 1000 if isinstance(updated, int | float) else item.modified_at
        known = self._sizes.get((item.file, name))
        if known is None or known[0] != at:
            size = connection.execute(_SIZE, {"id": row[0]}).fetchone()[0]
            known = self._sizes[item.file, name] = (at, size if isinstance(size, int) else 0)
        return name, at, known[1]


def session_items(file: Path, host_id: str) -> list[ImportItem]:
    """Return one session and its sub-agents; what is wrong with an unreadable database is reported by reading it."""
    item = database_at(file, _UNREADABLE)
    if item is None:
        return []
    databases = SessionDatabases()
    try:
        with open_database(file) as connection:
            _check_tables(connection)
            found = [databases.measure(connection, item, row) for row in connection.execute(_FAMILY, {"id": host_id})]
    except OSError:
        found = [(host_id, item.modified_at, item.size)]
    return [_session_item(file, *measured) for measured in found]


def _session_item(file: Path, name: str, at: float, size: int) -> ImportItem:
    return ImportItem(file, size, reread_time(at), f"{SESSION_LABEL}{name}")


def read_session(item: ImportItem) -> Iterator[StoredSession | StoredMessage | Problem]:
    """Yield one session of a database."""
    host_id = item.label.removeprefix(SESSION_LABEL)
    try:
        with open_database(item.file) as connection:
            columns = _check_tables(connection)
            wanted = [name for name in _COLUMNS if name in columns]
            query = f"SELECT {', '.join(['id', *wanted])} FROM session WHERE id = ?"
            row = connection.execute(query, (host_id,)).fetchone()
            if row is None:
                yield Problem(item.file, None, f"session {host_id} no longer exists")
                return
            yield _stored_session(dict(zip(wanted, row[1:], strict=True)), host_id)
            yield from _read_messages(item.file, connection, host_id)
            if _NEWER in tables(connection):
                yield from _read_newer_messages(item.file, connection, host_id)
    except OSError as error:
        yield Problem(item.file, None, str(error), unread=True)


def _check_tables(connection: sqlite3.Connection) -> set[str]:
    """Return the columns of the sessions table; raises if this is not a database of OpenCode."""
    found = tables(connection)
    for table, columns in _NEEDED.items():
        if not columns <= found.get(table, set()):
            raise OSError(f"not a known database of OpenCode: the table {table} is missing or has other columns")
    return found["session"]


def _stored_session(row: dict[str, Any], host_id: str) -> StoredSession:
    info = {**row, "id": host_id, "parentID": row.get("parent_id"), "time": {"created": row.get("time_created")}}
    return session_from_info(info, host_id)


def _read_messages(file: Path, connection: sqlite3.Connection, host_id: str) -> Iterator[StoredMessage | Problem]:
    names = [
        row[0] for row in connection.execute("SELECT id FROM message WHERE session_id = ? ORDER BY id", (host_id,))
    ]
    for name in names:
        row = connection.execute("SELECT data FROM message WHERE id = ?", (name,)).fetchone()
        info = _parse_object(row[0]) if row else None
        if info is None:
            yield Problem(file, None, f"message {name} of session {host_id} is not a JSON object")
            continue
        parts: list[dict[str, Any]] = []
        for part_id, data in rows(connection, "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (name,)):
            part = _parse_object(data)
            if part is None:
                yield Problem(file, None, f"part {part_id} of message {name} is not a JSON object")
            else:
                parts.append({**part, "id": str(part_id)})
        yield message_from_info({**info, "id": get_text(info, "id") or name}, str(name), parts)


def _read_newer_messages(file: Path, connection: sqlite3.Connection, host_id: str) -> Iterator[StoredMessage | Problem]:
    query = f"SELECT id, type, time_created, data FROM {_NEWER} WHERE session_id = ? ORDER BY seq"
    for name, kind, at, data in rows(connection, query, (host_id,)):
        info = _parse_object(data)
        if info is None:
            yield Problem(file, None, f"message {name} of session {host_id} is not a JSON object")
        else:
            yield message_from_row(str(kind), str(name), at, info)


def _parse_object(data: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
