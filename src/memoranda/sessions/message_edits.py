"""Changing what is there: taking messages back, compressing them away, redacting and deleting them."""

from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.errors import SessionError
from memoranda.sessions.copies import SAME, release, release_to_branches
from memoranda.sessions.feed import note_change
from memoranda.sessions.message_rows import REDACTED, dump_json
from memoranda.sessions.messages import Messages, delete_of, insert, recount, refuse_continued
from memoranda.sessions.store_part import count_redactions

_EMPTIED = ("content_format", "tool_calls", "reasoning", "reasoning_content", "reasoning_details",
            "codex_reasoning_items", "codex_message_items")  # fmt: skip

_GONE = dump_json({REDACTED: True})


class MessageEdits(Messages):
    """Every change here is told to whoever follows the store, and the counters stay right."""

    def rewind_to_message(self, session_id: str, message_id: int) -> dict[str, Any]:
        """Take back a message of the user and everything after it; they disappear from every view.

        A conversation is taken back where it stands: in a session that goes on in another one it is refused. Branches
        that began behind the message keep what they have of it.
        """
        with self._db.writing() as connection:
            self._require(connection, session_id)
            refuse_continued(connection, session_id)
            target = connection.execute(
                "SELECT role, is_summary FROM messages WHERE id = ? AND session_id = ? AND active = 1",
                (message_id, session_id),
            ).fetchone()
            if target is None:
                raise SessionError(f"Session {session_id!r} has no live message {message_id}.")
            if target[0] != "user" or target[1]:
                raise SessionError(f"Message {message_id} is not the user's; only those can be gone back to.")
            (number,) = connection.execute(
                "UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ? RETURNING rewind_count", (session_id,)
            ).fetchone()
            for heir in release_to_branches(connection, session_id, message_id):
                recount(connection, heir)
            repeated = _repeated(connection, session_id, message_id)
            gone = connection.execute(
                "UPDATE messages SET active = 0, rewound = ? WHERE session_id = ? AND id >= ? AND active = 1",
                (number, session_id, message_id),
            ).rowcount
            for message, owner in repeated:
                # Where it is live, in the session that was continued, it must come back as live.
                connection.execute(
                    "UPDATE messages SET rewound = CASE WHEN active = 1 THEN ? ELSE ? END, active = 0, compacted = 0"
                    " WHERE id = ?",
                    (-number, number, message),
                )
                _changed(connection, owner, message)
            _changed(connection, session_id, message_id)
            head = connection.execute(
                "SELECT max(id) FROM messages WHERE session_id = ? AND active = 1", (session_id,)
            ).fetchone()[0]
        return {"rewound_count": gone, "target_message_id": message_id, "new_head_id": head}

    def restore_rewound(self, session_id: str, since_id: int) -> int:
        """Bring back what the last rewind took; refused when the conversation has gone on since."""
        with self._db.writing() as connection:
            self._require(connection, session_id)
            later = connection.execute(
                "SELECT count(*) FROM messages WHERE session_id = ? AND id > ? AND active = 1", (session_id, since_id)
            ).fetchone()[0]
            if later:
                raise SessionError(f"Session {session_id!r} has gone on since: nothing can be put before that.")
            count = connection.execute(
                "UPDATE messages SET active = 1, rewound = NULL WHERE session_id = ? AND id >= ? AND active = 0"
                " AND rewound = (SELECT rewind_count FROM sessions WHERE id = ?) AND compacted = 0",
                (session_id, since_id, session_id),
            ).rowcount
            for message, owner in _repeated(connection, session_id, since_id):
                connection.execute(
                    "UPDATE messages SET active = CASE WHEN rewound < 0 THEN 1 ELSE 0 END,"
                    " compacted = CASE WHEN rewound < 0 THEN 0 ELSE 1 END, rewound = NULL"
                    " WHERE id = ? AND rewound IS NOT NULL",
                    (message,),
                )
                _changed(connection, owner, message)
            _changed(connection, session_id, since_id)
            return count

    def archive_and_compact(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Put a shorter context in place of the live one; what was said before stays and can be found.

        Give repeated messages `copy_of`, and a summary `is_summary`, so that nothing is found twice.
        """
        rows = self._encode_all(messages)
        with self._db.writing() as connection:
            self._require(connection, session_id)
            connection.execute(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session_id,)
            )
            ids = [insert(connection, session_id, each.row)[0] for each in rows]
            recount(connection, session_id)
            count_redactions(connection, sum(each.secrets for each in rows))
        return ids

    def clear_messages(self, session_id: str) -> int:
        """Delete every message of a session and keep the session; how many there were."""
        with self._db.writing() as connection:
            self._require(connection, session_id)
            for heir in release(connection, session_id):
                recount(connection, heir)
            count = delete_of(connection, session_id)
            _changed(connection, session_id, 0)
        self._db.shrink_log()
        return count

    def redact_message(self, message_id: int, content: str = "[redacted]") -> bool:
        """Replace all of a message's text for good, wherever it is repeated; False when it cannot be seen."""
        clean, redacted = self._redact(content)
        with self._db.writing() as connection:
            row = connection.execute(
                f"SELECT COALESCE(m.copy_of, m.id), sessions.conversation_id, m.content_format = '{SAME}'"
                f" FROM messages m JOIN sessions ON sessions.id = m.session_id WHERE m.id = ? AND {self._seen}",
                (message_id, *self._scope.values),
            ).fetchone()
            if row is None:
                return False
            original, conversation, refers = row
            touched = connection.execute(
                "UPDATE messages SET content = ?, extra = ?, " + ", ".join(f"{name} = NULL" for name in _EMPTIED)
                + " WHERE (id IN (?, ?) OR copy_of = ?)"
                " AND (session_id IN (SELECT id FROM sessions WHERE conversation_id = ?)"
                # What only refers is surely the same message of the same user; else that is what somebody says.
                f"  OR (? AND (id = ? OR content_format = '{SAME}'))) RETURNING id, session_id",
                (clean, _GONE, message_id, original, original, conversation, bool(refers), original),
            ).fetchall()  # fmt: skip
            for number, owner in touched:
                _changed(connection, owner, number)
            count_redactions(connection, redacted)
        self._db.shrink_log()
        return True


def _repeated(connection: Connection, session_id: str, from_id: int) -> list[tuple[int, str]]:
    """What the live messages of a session from one on repeat, and other repetitions of that: their ids and sessions.

    Only in the same conversation, whatever a caller said that a message repeats.
    """
    return connection.execute(
        "SELECT other.id, other.session_id FROM messages other"
        " WHERE other.session_id IN (SELECT id FROM sessions WHERE conversation_id ="
        "   (SELECT conversation_id FROM sessions WHERE id = ?)) AND (other.active = 0 OR other.session_id <> ?)"
        " AND COALESCE(other.copy_of, other.id) IN"
        "   (SELECT copy_of FROM messages WHERE session_id = ? AND id >= ? AND active = 1)",
        (session_id, session_id, session_id, from_id),
    ).fetchall()


def _changed(connection: Connection, session_id: str, from_message: int) -> None:
    recount(connection, session_id)
    note_change(connection, session_id, from_message)
