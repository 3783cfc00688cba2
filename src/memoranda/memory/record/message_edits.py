"""Changes existing messages: rewinds, compacts, redacts and deletes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.checksums import seal
from memoranda.memory.record.copies import (
    CHECKED_COLUMNS,
    JOIN_ORIGINAL,
    SAME,
    decode_checked,
    promote_copies,
    promote_copies_in_branches,
)
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import REDACTED, Message, delete_messages, dump_json, recount
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart, count_redactions, refuse_continued
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.sqlite.stored_texts import readable_rows

_CLEARED = ("content_format", "tool_calls", "reasoning", "reasoning_content", "reasoning_details",
            "codex_reasoning_items", "codex_message_items")  # fmt: skip

_REDACTED_EXTRA = dump_json({REDACTED: True})


class MessageEdits(StorePart):
    """Changes messages. Every change adds a row to the feed and updates the counters."""

    def __init__(self, engine: Engine, scope: Scope, redactor: Redactor | None, messages: Messages) -> None:
        super().__init__(engine, scope, redactor)
        self._messages = messages

    def rewind_to_message(self, session_id: str, message_id: int) -> dict[str, Any]:
        """Undo a message of the user and everything after it; they disappear from every view.

        Only the latest session of a conversation can be rewound: ContinuedError names the continuation of any other.
        Branches that started after the message keep their copies.
        """
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            refuse_continued(connection, session_id)
            target = connection.execute(
                "SELECT role, is_summary FROM messages WHERE id = ? AND session_id = ? AND active = 1",
                (message_id, session_id),
            ).fetchone()
            if target is None:
                raise SessionError(f"Session {session_id!r} has no live message {message_id}.")
            if target[0] != "user" or target[1]:
                raise SessionError(f"Message {message_id} is not the user's; only those can be rewound to.")
            count = rewind_from(connection, session_id, message_id)
            head = connection.execute(
                "SELECT max(id) FROM messages WHERE session_id = ? AND active = 1", (session_id,)
            ).fetchone()[0]
        return {"rewound_count": count, "target_message_id": message_id, "new_head_id": head}

    def restore_rewound(self, session_id: str, since_id: int) -> int:
        """Undo the last rewind and return how many messages it restored; raises SessionError after newer messages."""
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            later = connection.execute(
                "SELECT count(*) FROM messages WHERE session_id = ? AND id > ? AND active = 1", (session_id, since_id)
            ).fetchone()[0]
            if later:
                raise SessionError(f"Session {session_id!r} has newer messages, so the rewind cannot be undone.")
            (number,) = connection.execute("SELECT rewind_count FROM sessions WHERE id = ?", (session_id,)).fetchone()
            return restore_from(connection, session_id, since_id, number)

    def pop_message(self, session_id: str, message_id: int | None = None) -> Message | None:
        """Take back the last message of the session's context, whatever its role, and return it; None if it is empty.

        With a `message_id`, only if that is the last one: otherwise SessionError, so that of two callers that pop, none
        takes back what the other has added. `restore_rewound` undoes it, as it undoes a rewind.
        """
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            refuse_continued(connection, session_id)
            (last,) = connection.execute(
                "SELECT max(id) FROM messages WHERE session_id = ? AND active = 1", (session_id,)
            ).fetchone()
            if message_id is not None and last != message_id:
                raise SessionError(f"Message {message_id} is not the last one of session {session_id!r}.")
            if last is None:
                return None
            statement = f"SELECT {CHECKED_COLUMNS} FROM messages m {JOIN_ORIGINAL} WHERE m.id = ?"
            (row,) = readable_rows(connection, statement, (last,))
            message = decode_checked(row)
            rewind_from(connection, session_id, last)
        return message

    def archive_and_compact(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Replace the session's context with a shorter one; the old messages stay and can be found.

        Set `copy_of` on copied messages and `is_summary` on a summary, so that a search finds nothing twice.
        """
        encoded = self._messages.encode_all(messages)
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            connection.execute(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session_id,)
            )
            ids = [self._messages.insert(connection, session_id, message.row)[0] for message in encoded]
            recount(connection, session_id)
            count_redactions(connection, sum(message.secrets for message in encoded))
        return ids

    def clear_messages(self, session_id: str) -> int:
        """Delete every message of a session, keep the session, and return how many there were."""
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            for other_id in promote_copies(connection, session_id):
                recount(connection, other_id)
            count = delete_messages(connection, session_id)
            _recount_and_notify(connection, session_id, 0)
        self._engine.shrink_log()
        return count

    def redact_message(self, message_id: int, content: str = "[redacted]") -> bool:
        """Replace all text of a message and its copies permanently; False if it does not exist in this scope."""
        clean, redacted = self._redact(content)
        with self._engine.writing() as connection:
            row = connection.execute(
                f"SELECT COALESCE(m.copy_of, m.id), sessions.conversation_id, m.content_format = '{SAME}'"
                f" FROM messages m JOIN sessions ON sessions.id = m.session_id WHERE m.id = ? AND {self._in_scope}",
                (message_id, *self._scope.values),
            ).fetchone()
            if row is None:
                return False
            original, conversation, is_copy = row
            changed = connection.execute(
                f"UPDATE messages SET content = ?, extra = ?, {', '.join(f'{name} = NULL' for name in _CLEARED)}"
                " WHERE (id IN (?, ?) OR copy_of = ?)"
                " AND (session_id IN (SELECT id FROM sessions WHERE conversation_id = ?)"
                # A copy without text certainly belongs to the same user; any other `copy_of` is a caller's claim.
                f"  OR (? = 1 AND (id = ? OR content_format = '{SAME}'))) RETURNING id, session_id",
                (clean, _REDACTED_EXTRA, message_id, original, original, conversation, int(bool(is_copy)), original),
            ).fetchall()  # fmt: skip
            seal(connection, [number for number, _ in changed])
            for number, owner in changed:
                _recount_and_notify(connection, owner, number)
            count_redactions(connection, redacted)
        self._engine.shrink_log()
        return True


def rewind_from(connection: Connection, session_id: str, message_id: int) -> int:
    """Remove a session's active messages from an id on from every view; returns how many of this session."""
    (number,) = connection.execute(
        "UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ? RETURNING rewind_count", (session_id,)
    ).fetchone()
    for branch_id in promote_copies_in_branches(connection, session_id, message_id):
        recount(connection, branch_id)
    related = _related_copies(connection, session_id, message_id)
    count = connection.execute(
        "UPDATE messages SET active = 0, rewound = ? WHERE session_id = ? AND id >= ? AND active = 1",
        (number, session_id, message_id),
    ).rowcount
    for message, owner in related:
        # The sign of `rewound` records whether the message was active in its session, for a restore.
        connection.execute(
            "UPDATE messages SET rewound = CASE WHEN active = 1 THEN ? ELSE ? END, active = 0, compacted = 0"
            " WHERE id = ?",
            (-number, number, message),
        )
        _recount_and_notify(connection, owner, message)
    _recount_and_notify(connection, session_id, message_id)
    return count


def restore_from(connection: Connection, session_id: str, since_id: int, number: int) -> int:
    """Restore the messages from an id on that rewind `number` of the session removed; returns how many."""
    count = connection.execute(
        "UPDATE messages SET active = 1, rewound = NULL WHERE session_id = ? AND id >= ? AND active = 0"
        " AND rewound = ? AND compacted = 0",
        (session_id, since_id, number),
    ).rowcount
    for message, owner in _related_copies(connection, session_id, since_id):
        connection.execute(
            "UPDATE messages SET active = CASE WHEN rewound < 0 THEN 1 ELSE 0 END,"
            " compacted = CASE WHEN rewound < 0 THEN 0 ELSE 1 END, rewound = NULL"
            " WHERE id = ? AND rewound IS NOT NULL",
            (message,),
        )
        _recount_and_notify(connection, owner, message)
    _recount_and_notify(connection, session_id, since_id)
    return count


def _related_copies(connection: Connection, session_id: str, from_id: int) -> list[tuple[int, str]]:
    """The ids and sessions of the originals of a session's active messages from an id on, and of their other copies.

    Only messages of the same conversation count, whatever `copy_of` a caller claimed.
    """
    return connection.execute(
        "SELECT other.id, other.session_id FROM messages other"
        " WHERE other.session_id IN (SELECT id FROM sessions WHERE conversation_id ="
        "   (SELECT conversation_id FROM sessions WHERE id = ?)) AND (other.active = 0 OR other.session_id <> ?)"
        " AND COALESCE(other.copy_of, other.id) IN"
        "   (SELECT copy_of FROM messages WHERE session_id = ? AND id >= ? AND active = 1)",
        (session_id, session_id, session_id, from_id),
    ).fetchall()


def _recount_and_notify(connection: Connection, session_id: str, from_message: int) -> None:
    recount(connection, session_id)
    note_change(connection, session_id, from_message)
