"""Replaces names with credentials in a store that an earlier version wrote, in all tables at once.

Earlier versions stored ids, sources and projects as callers passed them. The doctor finds such names and, on request,
gives them the form that they would get today, by which callers find the sessions again.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memoranda.memory.record.checksums import resealed
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection

# The columns with names, by table; a session's own id is replaced last, because the others refer to it.
_REFERENCES = (
    ("sessions", "parent_session_id"),
    ("sessions", "conversation_id"),
    ("sessions", "successor_id"),
    ("sessions", "source"),
    ("sessions", "project"),
    ("changes", "session_id"),
)
_IN_MESSAGES = ("external_id", "tool_call_id")
_SEARCHED_TOGETHER = 200


class NameRepair(StorePart):
    """Finds and replaces names with credentials, of all users."""

    def find_names(self, *, in_messages: bool = False) -> dict[str, str]:
        """The names with a credential, each with its replacement; `in_messages` also reads the ids of every message."""
        self._require_everyone()
        with self._engine.reading() as connection:
            return self._find(connection, in_messages)

    def replace_names(self) -> dict[str, str]:
        """Replace every name with a credential in one transaction; the names, each with its replacement.

        The caller rebuilds what was derived from the store, such as the search index.
        """
        self._require_everyone()
        with self._engine.writing() as connection:
            names = self._find(connection, in_messages=True)
            self._dialect.defer_references(connection)
            for old in names:
                names[old] = new = _free_id(connection, names[old])
                _replace_in_messages(connection, old, new)
                for table, column in _REFERENCES:
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, old))
                if connection.execute("UPDATE sessions SET id = ? WHERE id = ?", (new, old)).rowcount:
                    note_change(connection, new)
                _replace_deleted(connection, old, new)
            _replace_keys(connection, names)
        return names

    def _find(self, connection: Connection, in_messages: bool) -> dict[str, str]:
        if self._name is None:
            return {}
        columns = [*_REFERENCES, ("sessions", "id"), ("deleted_sessions", "id")]
        columns += [("messages", column) for column in _IN_MESSAGES] if in_messages else []
        return {
            name: self._name(name)
            for table, column in columns
            for name in self._suspicious(_distinct(connection, table, column))
            if self._name(name) != name
        }

    def _suspicious(self, names: Iterable[str]) -> Iterator[str]:
        """The names that may contain a credential; many are searched together."""
        group: list[str] = []
        for name in names:
            group.append(name)
            if len(group) == _SEARCHED_TOGETHER:
                yield from () if self._is_clean(group) else group
                group = []
        yield from () if self._is_clean(group) else group


def _distinct(connection: Connection, table: str, column: str) -> Iterator[str]:
    rows = connection.execute(f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL")
    return (row[0] for row in rows if isinstance(row[0], str))


def _free_id(connection: Connection, name: str) -> str:
    """The replacement, with a number if a session has it already, because it was used since the update."""
    free, number = name, 1
    while connection.execute("SELECT 1 FROM sessions WHERE id = ?", (free,)).fetchone():
        number += 1
        free = f"{name}-{number}"
    return free


def _replace_in_messages(connection: Connection, old: str, new: str) -> None:
    for column in ("session_id", *_IN_MESSAGES):
        ids = _ids(connection, column, old)
        with resealed(connection, ids):
            for number in ids:
                taken = (
                    column == "external_id"
                    and connection.execute(
                        "SELECT 1 FROM messages other JOIN messages m ON other.session_id = m.session_id"
                        " WHERE m.id = ? AND other.external_id = ?",
                        (number, new),
                    ).fetchone()
                )
                stored = f"{new}-{number}" if taken else new
                connection.execute(f"UPDATE messages SET {column} = ? WHERE id = ?", (stored, number))


def _ids(connection: Connection, column: str, value: str) -> Sequence[int]:
    rows = connection.execute(f"SELECT id FROM messages WHERE {column} = ? ORDER BY id", (value,))
    return [row[0] for row in rows.fetchall()]


def _replace_deleted(connection: Connection, old: str, new: str) -> None:
    if connection.execute("DELETE FROM deleted_sessions WHERE id = ?", (old,)).rowcount:
        connection.execute("INSERT INTO deleted_sessions (id) VALUES (?) ON CONFLICT (id) DO NOTHING", (new,))


def _replace_keys(connection: Connection, names: dict[str, str]) -> None:
    """Replace the ids at the end of keys, such as that of a conversation's list of tasks."""
    rows: list[Any] = connection.execute("SELECT key FROM state_meta").fetchall()
    for (key,) in rows:
        kind, colon, name = str(key).partition(":")
        if colon and name in names:
            connection.execute("DELETE FROM state_meta WHERE key = ?", (f"{kind}:{names[name]}",))
            connection.execute("UPDATE state_meta SET key = ? WHERE key = ?", (f"{kind}:{names[name]}", key))
