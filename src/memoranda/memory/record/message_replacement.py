"""Replaces the messages of a session, for programs that hand over the whole list, and undoes that.

The old messages are rewound, so they disappear from every view and stay in the record. What was replaced last is noted
in `state_meta`, so that the exchange can be undone, and the undo as well.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memoranda.errors import SessionChangedError, SessionError
from memoranda.memory.record.checksums import resealed
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.lifecycle import check_extra_fields, merge_extra_fields
from memoranda.memory.record.message_edits import restore_from, rewind_from
from memoranda.memory.record.message_rows import WRITTEN, EncodedMessage, recount
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.rotation import REPLACED
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart, count_redactions, refuse_continued
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine

_EXTERNAL_ID = WRITTEN.index("external_id")


class MessageReplacement(StorePart):
    """Replaces whole lists of messages, each in one transaction."""

    def __init__(self, engine: Engine, scope: Scope, redactor: Redactor | None, messages: Messages) -> None:
        super().__init__(engine, scope, redactor)
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
        encoded = self._messages.encode_all(messages)
        check_extra_fields(extra_fields or {})
        fields, redacted = self._redact(dict(extra_fields or {}))
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
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
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            refuse_continued(connection, session_id)
            row = connection.execute(
                "SELECT value FROM state_meta WHERE key = ?", (f"{REPLACED}:{session_id}",)
            ).fetchone()
            if row is None:
                raise SessionError(f"The messages of session {session_id!r} were not replaced.")
            number, last = json.loads(row[0])
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
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (f"{REPLACED}:{session_id}", json.dumps([_rewind_count(connection, session_id), last])),
    )


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
