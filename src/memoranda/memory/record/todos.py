"""The list of tasks of a conversation, which follows its messages: undoing a turn undoes what the turn changed in it.

`state_meta` has one value per conversation, `{"versions": [{"after": 7, "todos": […]}, …]}`. A version says which
message was the last when the list was saved. The current list is the latest version whose message was not rewound, so a
rewind and its restore change nothing here.
"""

import json
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.message_rows import dump_json
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.storage.connection import Connection

# The field of an exported session, and the prefix of the key in `state_meta`.
TODOS = "todos"
# How many saved versions a conversation keeps: as many changes as can be undone.
_MAX_VERSIONS = 20

Version = dict[str, Any]


class Todos(StorePart):
    """Reads and saves the lists of tasks."""

    def conversation_todos(self, session_id: str) -> str | None:
        """The list of tasks of this conversation as JSON, across restarts and continuations; None without one."""
        with self._engine.reading() as connection:
            self._require(connection, session_id)
            todos = read_todos(connection, session_id)
        return None if todos is None else dump_json(todos)

    def save_conversation_todos(self, session_id: str, todos: str) -> None:
        """Save the list of tasks of this conversation, given as JSON; raises SessionError for what is not a list."""
        saved, redacted = self._redact(_parse_list(todos))
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            # A copy is rewound together with its original, to which branches refer too.
            last = connection.execute(
                "SELECT coalesce(copy_of, id) FROM messages WHERE session_id = ? AND active = 1"
                " ORDER BY id DESC LIMIT 1",
                (session_id,),
            ).fetchone()
            add_version(connection, session_id, saved, after=last[0] if last else 0)
            count_redactions(connection, redacted)


def read_todos(connection: Connection, session_id: str) -> list[Any] | None:
    """The current list of the conversation that a session belongs to; None when nothing was saved, or all is undone."""
    conversation = _conversation(connection, session_id)
    for version in reversed(_read_versions(connection, conversation)):
        if not _is_rewound(connection, conversation, version["after"]):
            found: list[Any] = version["todos"]
            return found
    return None


def add_version(connection: Connection, session_id: str, todos: list[Any], *, after: int = 0) -> None:
    """Save a list as the current one; `after` is the message that must stay for the list to stay, 0 for none."""
    conversation = _conversation(connection, session_id)
    versions = [*_read_versions(connection, conversation), {"after": after, "todos": todos}]
    _write_versions(connection, conversation, versions[-_MAX_VERSIONS:])


def copy_todos(connection: Connection, session_id: str, branch_id: str) -> None:
    """Give a branch the list of its original, with the versions to which an undo in the branch returns."""
    versions = _read_versions(connection, _conversation(connection, session_id))
    if versions:
        _write_versions(connection, branch_id, versions)


def drop_todos(connection: Connection, session_id: str) -> None:
    """Remove the list of a conversation whose first session is deleted."""
    connection.execute("DELETE FROM state_meta WHERE key = ?", (_key(session_id),))


def _is_rewound(connection: Connection, conversation: str, message_id: int) -> bool:
    """Whether a message or its copy left the context without a compression; also if another program did that."""
    return bool(
        message_id
        and connection.execute(
            "SELECT 1 FROM messages JOIN sessions ON sessions.id = messages.session_id"
            " WHERE (messages.id = ? OR messages.copy_of = ?) AND conversation_id = ? AND active = 0 AND compacted = 0",
            (message_id, message_id, conversation),
        ).fetchone()
    )


def _read_versions(connection: Connection, conversation: str) -> list[Version]:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (_key(conversation),)).fetchone()
    try:
        stored = json.loads(row[0]) if row is not None else []
    except (TypeError, ValueError):
        # Another program wrote it, so it is not a list of tasks.
        return []
    if isinstance(stored, list):
        # A value without versions, as it was stored before an undo could restore it.
        return [{"after": 0, "todos": stored}] if stored else []
    versions = stored.get("versions") if isinstance(stored, dict) else None
    return [version for version in versions if _is_version(version)] if isinstance(versions, list) else []


def _parse_list(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise SessionError("The tasks of a conversation must be a JSON list.")
    return found


def _is_version(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("after"), int) and isinstance(value.get("todos"), list)


def _write_versions(connection: Connection, conversation: str, versions: list[Version]) -> None:
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_key(conversation), dump_json({"versions": versions})),
    )


def _conversation(connection: Connection, session_id: str) -> str:
    (found,) = connection.execute("SELECT conversation_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return str(found)


def _key(conversation: str) -> str:
    return f"{TODOS}:{conversation}"
