"""Changes existing messages: rewinds, compacts, redacts, deletes and replaces them; appends with state.

A program that hands over the whole list of messages replaces those of a session. The old messages are rewound, so they
disappear from every view and stay in the record. What was replaced last is noted in `state_meta`, so that the exchange
can be undone, and the undo as well.

A framework may keep state beside its conversations: fields of a session, and items that other sessions read. An event
that changes them must not be recorded without the change, nor the change be made by an event that was refused, so
`StatefulAppend` does both in one transaction.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memoranda.errors import SessionChangedError, SessionError
from memoranda.memory.record.checksums import resealed, seal
from memoranda.memory.record.copies import (
    CHECKED_COLUMNS,
    JOIN_ORIGINAL,
    SAME,
    decode_checked,
    promote_copies,
    promote_copies_in_branches,
)
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.items import Items, lock_items
from memoranda.memory.record.message_rows import (
    REDACTED,
    WRITTEN,
    EncodedMessage,
    Message,
    delete_messages,
    dump_json,
    recount,
)
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.rotation import REPLACED
from memoranda.memory.record.sessions import check_extra_fields, merge_extra_fields
from memoranda.memory.record.store_part import StorePart, count_redactions, refuse_continued
from memoranda.storage.connection import Connection
from memoranda.storage.engine import readable_rows
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.types import DeleteItem, PutItem

_CLEARED = ("content_format", "tool_calls", "reasoning", "reasoning_content", "reasoning_details",
            "codex_reasoning_items", "codex_message_items")  # fmt: skip

_REDACTED_EXTRA = dump_json({REDACTED: True})


class MessageEdits(StorePart):
    """Changes messages. Every change adds a row to the feed and updates the counters."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(*messages.common)
        self._messages = messages

    def rewind_to_message(self, session_id: str, message_id: int) -> dict[str, Any]:
        """Undo a message of the user and everything after it; they disappear from every view.

        Only the latest session of a conversation can be rewound: ContinuedError names the continuation of any other.
        Branches that started after the message keep their copies.
        """
        session_id = self._stored_name(session_id)
        with self._changing(session_id) as connection:
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
        session_id = self._stored_name(session_id)
        with self._changing(session_id) as connection:
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
        session_id = self._stored_name(session_id)
        with self._changing(session_id) as connection:
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
        session_id = self._stored_name(session_id)
        encoded = self._messages.encode_all(messages)
        with self._changing(session_id) as connection:
            connection.execute(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session_id,)
            )
            ids = [self._messages.insert(connection, session_id, message.row)[0] for message in encoded]
            recount(connection, session_id)
            count_redactions(connection, sum(message.secrets for message in encoded))
        return ids

    def clear_messages(self, session_id: str) -> int:
        """Delete every message of a session, keep the session, and return how many there were."""
        session_id = self._stored_name(session_id)
        with self._changing(session_id) as connection:
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


_EXTERNAL_ID = WRITTEN.index("external_id")


class MessageReplacement(StorePart):
    """Replaces whole lists of messages, each in one transaction."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(*messages.common)
        self._messages = messages

    def replace_messages(
        self,
        session_id: str,
        messages: Iterable[Mapping[str, Any]],
        *,
        last_seen: int | None = None,
        extra_fields: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Replace the messages in a session's context with others, all of them or none, and return the new ids.

        With `last_seen`, the id of the last message that the caller has read (0 for none), nothing is replaced if the
        session has a newer one by now: SessionChangedError. `restore_replaced` undoes it. Only the latest session of a
        conversation can be changed: ContinuedError names the continuation of any other. `extra_fields` are fields of
        the session to set in the same transaction, as `set_extra_fields` does; undoing does not change them.
        """
        session_id = self._stored_name(session_id)
        encoded = self._messages.encode_all(messages)
        check_extra_fields(extra_fields or {})
        fields, redacted = self._redact(dict(extra_fields or {}))
        with self._changing(session_id) as connection:
            refuse_continued(connection, session_id)
            first, last = _active_range(connection, session_id)
            if last_seen is not None and last != last_seen:
                raise SessionChangedError(
                    f"Session {session_id!r} ends with message {last}, not with {last_seen}: it has changed since it "
                    "was read. Nothing was replaced."
                )
            rewind_from(connection, session_id, first)
            _free_external_ids(connection, session_id, encoded)
            ids = [self._messages.insert(connection, session_id, message.row)[0] for message in encoded]
            _note_replacement(connection, session_id, max(ids, default=0))
            recount(connection, session_id)
            note_change(connection, session_id, first)
            if fields:
                merge_extra_fields(connection, session_id, fields)
            count_redactions(connection, redacted + sum(message.secrets for message in encoded))
        self._messages.notify_appended()
        return ids

    def restore_replaced(self, session_id: str) -> int:
        """Undo the last replacement and return how many messages are back; a second call undoes the undo.

        Raises SessionError if nothing was replaced, or if the session was rewound or has newer messages since then.
        """
        session_id = self._stored_name(session_id)
        with self._changing(session_id) as connection:
            refuse_continued(connection, session_id)
            replaced = read_meta(connection, f"{REPLACED}:{session_id}")
            if replaced is None:
                raise SessionError(f"The messages of session {session_id!r} were not replaced.")
            number, last = json.loads(replaced)
            first, last_active = _active_range(connection, session_id)
            if last_active != last or _rewind_count(connection, session_id) != number:
                raise SessionError(f"Session {session_id!r} has changed since, so the replacement cannot be undone.")
            rewind_from(connection, session_id, first)
            count = restore_from(connection, session_id, 0, number)
            _, restored = _active_range(connection, session_id)
            _note_replacement(connection, session_id, restored)
        self._messages.notify_appended()
        return count


def _active_range(connection: Connection, session_id: str) -> tuple[int, int]:
    """The ids of the first and the last message in the context of a session; 0 if there is none."""
    first, last = connection.execute(
        "SELECT min(id), max(id) FROM messages WHERE session_id = ? AND active = 1", (session_id,)
    ).fetchone()
    return first or 0, last or 0


def _rewind_count(connection: Connection, session_id: str) -> int:
    (count,) = connection.execute("SELECT rewind_count FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return int(count)


def _note_replacement(connection: Connection, session_id: str, last: int) -> None:
    write_meta(connection, f"{REPLACED}:{session_id}", json.dumps([_rewind_count(connection, session_id), last]))


def _free_external_ids(connection: Connection, session_id: str, messages: Sequence[EncodedMessage]) -> None:
    """Take the external ids of the new messages from the replaced ones, which would count as the same messages."""
    for name in (message.row[_EXTERNAL_ID] for message in messages):
        if name is None:
            continue
        row = connection.execute(
            "SELECT id FROM messages WHERE session_id = ? AND external_id = ?", (session_id, name)
        ).fetchone()
        if row is not None:
            with resealed(connection, [row[0]]):
                connection.execute("UPDATE messages SET external_id = NULL WHERE id = ?", (row[0],))


ItemChanges = tuple[Items, Sequence[PutItem | DeleteItem]]
"""Changes of one user's items, with the part of the store that may make them."""


class StatefulAppend(StorePart):
    """Appends messages, sets fields of their session and writes items: all of it or nothing."""

    def __init__(self, messages: Messages) -> None:
        """`messages` is that part of a store; sessions outside of its scope are refused."""
        super().__init__(*messages.common)
        self._messages = messages

    def append_with_state(
        self,
        session_id: str,
        messages: Iterable[Mapping[str, Any]],
        *,
        last_seen: int | None = None,
        extra_fields: Mapping[str, Any] | None = None,
        items: Sequence[ItemChanges] = (),
    ) -> list[int]:
        """Append messages as `append_messages` does, and return their ids.

        `extra_fields` are those of `set_extra_fields`. `items` may be those of several users of this store; the
        caller has the parts of the store that belong to these users.
        """
        session_id = self._stored_name(session_id)
        encoded = self._messages.encode_all(messages)
        check_extra_fields(extra_fields or {})
        fields, redacted = self._redact(dict(extra_fields or {}))
        writes = [(part, part.prepare(changes)) for part, changes in items if changes]

        def append(connection: Connection) -> list[int]:
            ids = self._messages.append_encoded(connection, session_id, encoded, last_seen)
            if fields:
                merge_extra_fields(connection, session_id, fields)
                count_redactions(connection, redacted)
            if writes:
                with self._engine.across_users(connection):
                    now = time.time()
                    lock_items(self._engine, connection, [write for _, prepared in writes for write in prepared])
                    for part, prepared in writes:
                        part.write_prepared(connection, prepared, now)
            return ids

        ids = self._engine.write(append)
        self._messages.notify_appended()
        for part, _ in writes:
            part.notify_changed()
        return ids
