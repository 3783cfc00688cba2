"""Appending, reading and taking back messages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.errors import SessionError
from memoranda.sessions.feed import note_change
from memoranda.sessions.part import Part, count_redactions, unknown
from memoranda.sessions.records import READ, WRITTEN, Message, as_chat, decode, decode_json, encode

_INSERT = (
    f"INSERT INTO messages (session_id, {', '.join(WRITTEN)}) VALUES ({', '.join('?' * (len(WRITTEN) + 1))})"
    " ON CONFLICT (session_id, external_id) WHERE external_id IS NOT NULL DO NOTHING RETURNING id"
)
_FIELDS = ", ".join(f"m.{name}" for name in READ)
_EXTERNAL_ID = WRITTEN.index("external_id")
_TOOL_CALLS = WRITTEN.index("tool_calls")
_TIMESTAMP = WRITTEN.index("timestamp")
_EVERYTHING = 2**62
_SAID = "(active = 1 OR compacted = 1) AND copy_of IS NULL AND is_summary IS NULL"


class Messages(Part):
    """What was said in a session."""

    def append_message(
        self,
        session_id: str,
        role: str,
        content: Any = None,
        **fields: Any,
    ) -> int:
        """Record one message; when this returns its id, it is on the disk.

        `fields` are those of the messages table (tool_name, tool_calls, tool_call_id, token_count, finish_reason,
        reasoning, timestamp, external_id …); others are kept as well. A message whose external_id the session
        already has is not added again, and the id of the first one is returned.
        """
        return self.append_messages(session_id, [{"role": role, "content": content, **fields}])[0]

    def append_messages(self, session_id: str, messages: Iterable[Mapping[str, Any]]) -> list[int]:
        """Record several messages in one commit: all of them or none."""
        rows, redacted = [], 0
        for message in messages:
            clean, count = self._redact(message)
            redacted += count
            rows.append(encode(clean))
        with self._db.writing() as connection:
            ids = [insert(connection, session_id, row) for row in rows]
            added = [row for row, (_, is_new) in zip(rows, ids, strict=True) if is_new]
            self._count(connection, session_id, added)
            count_redactions(connection, redacted)
        return [number for number, _ in ids]

    def get_messages(
        self, session_id: str, include_inactive: bool = False, limit: int | None = None, offset: int = 0
    ) -> list[Message]:
        """The messages that are in the session's context, in order, with every column.

        `include_inactive` adds those that compression took out of the context; messages taken back stay out.
        """
        which = "(m.active = 1 OR m.compacted = 1)" if include_inactive else "m.active = 1"
        most = _EVERYTHING if limit is None else limit
        return self._select(f"m.session_id = ? AND {which} ORDER BY m.id LIMIT ? OFFSET ?", (session_id, most, offset))

    def get_messages_as_conversation(self, session_id: str, include_ancestors: bool = False) -> list[Message]:
        """The session as chat APIs take it; with its ancestors, the whole of a compressed conversation."""
        if not include_ancestors:
            return [as_chat(message) for message in self.get_messages(session_id)]
        chain = self._chain(session_id)
        # Each session of a chain repeats parts of the one before; the repetitions are left out.
        return [
            as_chat(message)
            for member in chain
            for message in self.get_messages(member, include_inactive=True)
            if message["copy_of"] is None and not message["is_summary"]
        ]

    def get_message(self, message_id: int) -> Message | None:
        """One message, unless it was taken back."""
        found = self._select("m.id = ? AND (m.active = 1 OR m.compacted = 1)", (message_id,))
        return found[0] if found else None

    def live_message_ids(self, session_id: str) -> frozenset[int]:
        """The messages that are in the session's context, and those that they repeat."""
        with self._db.reading() as connection:
            rows = connection.execute(
                "SELECT m.id, m.copy_of FROM messages m JOIN sessions ON sessions.id = m.session_id"
                f" WHERE m.session_id = ? AND m.active = 1 AND {self._seen}",
                (session_id, *self._scope.values),
            )
            return frozenset(number for row in rows for number in row if number is not None)

    def rewind_to_message(self, session_id: str, message_id: int) -> dict[str, Any]:
        """Take back a message of the user and everything after it; they disappear from every view."""
        target = self.get_message(message_id)
        if target is None or target["session_id"] != session_id or not target["active"]:
            raise SessionError(f"Session {session_id!r} has no live message {message_id}.")
        if target["role"] != "user":
            raise SessionError(f"Message {message_id} is not the user's; only a user's message can be taken back to.")
        with self._db.writing() as connection:
            self._require(connection, session_id)
            gone = connection.execute(
                "UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ? AND active = 1",
                (session_id, message_id),
            ).rowcount
            connection.execute("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?", (session_id,))
            self._changed(connection, session_id, message_id)
            head = connection.execute(
                "SELECT max(id) FROM messages WHERE session_id = ? AND active = 1", (session_id,)
            ).fetchone()[0]
        return {"rewound_count": gone, "target_message": target, "new_head_id": head}

    def restore_rewound(self, session_id: str, since_id: int) -> int:
        """Bring back what was taken back from a message on; refused when the conversation has gone on since."""
        with self._db.writing() as connection:
            self._require(connection, session_id)
            taken_back = "session_id = ? AND id >= ? AND active = 0 AND compacted = 0"
            later = connection.execute(
                "SELECT count(*) FROM messages WHERE session_id = ? AND id > ? AND active = 1", (session_id, since_id)
            ).fetchone()[0]
            if later:
                raise SessionError(
                    f"Session {session_id!r} has gone on since; what was taken back cannot be put before it."
                )
            count = connection.execute(
                f"UPDATE messages SET active = 1 WHERE {taken_back}", (session_id, since_id)
            ).rowcount
            self._changed(connection, session_id, since_id)
            return count

    def archive_and_compact(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Put a shorter context in place of the live one; what was said before stays and can be found.

        Give repeated messages `copy_of`, and a summary `is_summary`, so that nothing is found twice.
        """
        redacted = 0
        rows = []
        for message in messages:
            clean, count = self._redact(message)
            redacted += count
            rows.append(encode(clean))
        with self._db.writing() as connection:
            self._require(connection, session_id)
            connection.execute(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session_id,)
            )
            ids = [insert(connection, session_id, row)[0] for row in rows]
            recount(connection, session_id)
            count_redactions(connection, redacted)
        return ids

    def clear_messages(self, session_id: str) -> int:
        """Delete every message of a session and keep the session; how many there were."""
        with self._db.writing() as connection:
            self._require(connection, session_id)
            count = connection.execute("DELETE FROM messages WHERE session_id = ?", (session_id,)).rowcount
            self._changed(connection, session_id, 0)
        self._db.shrink_log()
        return count

    def redact_message(self, message_id: int, content: str = "[redacted]") -> bool:
        """Replace all of a message's text for good, in the record and for whoever follows it."""
        with self._db.writing() as connection:
            row = connection.execute(
                "SELECT m.session_id FROM messages m JOIN sessions ON sessions.id = m.session_id"
                f" WHERE m.id = ? AND {self._seen}",
                (message_id, *self._scope.values),
            ).fetchone()
            if row is None:
                return False
            connection.execute(
                "UPDATE messages SET content = ?, content_format = NULL, tool_calls = NULL, reasoning = NULL,"
                " reasoning_content = NULL, reasoning_details = NULL, codex_reasoning_items = NULL,"
                " codex_message_items = NULL, extra = NULL WHERE id = ? OR copy_of = ?",
                (content, message_id, message_id),
            )
            self._changed(connection, row[0], message_id)
        self._db.shrink_log()
        return True

    def _select(self, condition: str, values: Sequence[Any]) -> list[Message]:
        with self._db.reading() as connection:
            rows = connection.execute(
                f"SELECT {_FIELDS} FROM messages m JOIN sessions ON sessions.id = m.session_id"
                f" WHERE {self._seen} AND {condition}",
                (*self._scope.values, *values),
            )
            return [decode(row) for row in rows]

    def _chain(self, session_id: str) -> list[str]:
        with self._db.reading() as connection:
            rows = connection.execute(
                "SELECT id FROM sessions WHERE conversation_id ="
                f" (SELECT conversation_id FROM sessions WHERE id = ? AND {self._seen}) ORDER BY started_at, id",
                (session_id, *self._scope.values),
            ).fetchall()
        members = [row[0] for row in rows]
        return members[: members.index(session_id) + 1] if session_id in members else []

    def _count(self, connection: Connection, session_id: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add new rows to the session's counters; this is also where an unknown session is noticed."""
        said = [row for row in rows if row[_COPY_OF] is None and row[_IS_SUMMARY] is None]
        latest = max((row[_TIMESTAMP] for row in rows), default=0.0)
        updated = connection.execute(
            "UPDATE sessions SET message_count = message_count + ?, tool_call_count = tool_call_count + ?,"
            " last_active = CASE WHEN last_active < ? THEN ? ELSE last_active END"
            f" WHERE id = ? AND {self._seen}",
            (len(said), sum(map(_calls, said)), latest, latest, session_id, *self._scope.values),
        )
        if updated.rowcount == 0:
            raise unknown(session_id)

    def _changed(self, connection: Connection, session_id: str, from_message: int) -> None:
        recount(connection, session_id)
        note_change(connection, session_id, from_message)


_COPY_OF = WRITTEN.index("copy_of")
_IS_SUMMARY = WRITTEN.index("is_summary")


def insert(connection: Connection, session_id: str, row: Sequence[Any]) -> tuple[int, bool]:
    """Add a row; its id, and whether it is new."""
    added = connection.execute(_INSERT, (session_id, *row)).fetchone()
    if added is not None:
        return int(added[0]), True
    there = connection.execute(
        "SELECT id FROM messages WHERE session_id = ? AND external_id = ?", (session_id, row[_EXTERNAL_ID])
    ).fetchone()
    return int(there[0]), False


def recount(connection: Connection, session_id: str) -> None:
    """Set a session's counters and its last activity from its messages."""
    connection.execute(
        "UPDATE sessions SET"
        f" message_count = (SELECT count(*) FROM messages WHERE session_id = sessions.id AND {_SAID}),"
        " last_active = COALESCE((SELECT max(timestamp) FROM messages WHERE session_id = sessions.id"
        "   AND (active = 1 OR compacted = 1)), started_at)"
        " WHERE id = ?",
        (session_id,),
    )
    rows = connection.execute(
        f"SELECT tool_calls FROM messages WHERE session_id = ? AND tool_calls IS NOT NULL AND {_SAID}", (session_id,)
    )
    calls = sum(_number_of_calls(row[0]) for row in rows)
    connection.execute("UPDATE sessions SET tool_call_count = ? WHERE id = ?", (calls, session_id))


def _calls(row: Sequence[Any]) -> int:
    return 0 if row[_TOOL_CALLS] is None else _number_of_calls(row[_TOOL_CALLS])


def _number_of_calls(stored: str) -> int:
    calls = decode_json(stored)
    return len(calls) if isinstance(calls, list) else 1
