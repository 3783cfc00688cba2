"""Appends messages together with the state that they change, in one transaction.

A framework may keep state beside its conversations: fields of a session, and items that other sessions read. An event
that changes them must not be recorded without the change, nor the change be made by an event that was refused.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memoranda.memory.record.items import Items, lock_items
from memoranda.memory.record.lifecycle import check_extra_fields, merge_extra_fields
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.storage.connection import Connection
from memoranda.types import DeleteItem, PutItem

ItemChanges = tuple[Items, Sequence[PutItem | DeleteItem]]
"""Changes of one user's items, with the part of the store that may make them."""


class StatefulAppend(StorePart):
    """Appends messages, sets fields of their session and writes items: all of it or nothing."""

    def __init__(self, messages: Messages) -> None:
        """`messages` is that part of a store; sessions outside of its scope are refused."""
        super().__init__(messages._engine, messages._scope, messages._redactor)
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
