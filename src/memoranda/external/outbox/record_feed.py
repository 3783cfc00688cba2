"""Reads from the record what a provider is to receive, and what a job of the outbox contains.

Completed turns are found by their marks, everything else by its row of notifications; both are read from the position
that the outbox keeps for a provider and a user. The content of a job is read when it is delivered, so text that was
forgotten or taken back meanwhile is not sent.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.external.outbox.jobs import DAMAGED, Found, NewJob
from memoranda.external.outbox.recorded_turns import (
    completed_messages,
    completed_turns,
    ids_of,
    joined_key,
    read_joined,
    read_turn,
    turn_key,
)
from memoranda.memory.record.notifications import FeedHeads, NewNotification, Notification
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.orphaned_wal import record_exists
from memoranda.support.home import Home

OpenRecord = Callable[[], SessionStore]


class JobContent(NamedTuple):
    """The arguments of a hook in their order, and the facts by name."""

    args: dict[str, Any]
    facts: dict[str, Any]


class DamagedNotificationError(StorageError):
    """A notification that cannot be read, or has changed on the disk since it was recorded."""

    def __init__(self) -> None:
        super().__init__(DAMAGED)


class RecordFeed:
    """The record of a home: one that is open already, or one that is opened when it is first needed."""

    def __init__(self, home: Path, server_url: str = "", opened: OpenRecord | None = None) -> None:
        self._location: Path | str = server_url or Home(home).state_db
        self._opened = opened
        self._own: SessionStore | None = None
        self._lock = threading.Lock()
        self._store_ids: dict[str, frozenset[str]] = {}

    def exists(self) -> bool:
        """Whether the home has a record; asking does not create one."""
        return self._own is not None or record_exists(self._location)

    def store(self, user: str = "") -> SessionStore:
        """The record for one user, empty for the home's owner."""
        return self.everyone().scoped(Scope.of(user or None))

    def add(self, provider: str, user: str, job: NewJob, owner: str, created: float) -> None:
        """Record a notification; it is durable when this returns."""
        payload = {"args": job.args, "facts": job.facts}
        new = NewNotification(provider, user, job.kind, job.session_id, job.key, payload, owner, created)
        self.store(user).feed.notifications.add(new)

    def after(self, provider: str, user: str, position: FeedHeads) -> tuple[FeedHeads, list[Found]]:
        """How far the record can be read now, and what it has for a provider after a position, in order."""
        store = self.store(user)
        # Outside the view: on a server it waits for what is being committed.
        if store.feed.notifications.heads(user) == position:
            return position, []
        store_ids = self._store_ids.get(user) or self._store_ids.setdefault(user, ids_of(store))
        with store.conversations.one_view():
            reached = store.feed.notifications.heads(user)
            new = reached.messages > position.messages
            turns = completed_turns(store, store_ids, provider, position.messages) if new else []
            rows = store.feed.notifications.after(provider, user, position.notifications)
        # Rows are removed when they are delivered, so that the last one may be before the position.
        reached = reached._replace(notifications=max(reached.notifications, position.notifications))
        found = [(turn.last_message or 0, 0, turn) for turn in turns]
        found += [(row.after_message, row.id, _as_found(row)) for row in rows]
        return reached, [each for _, _, each in sorted(found, key=lambda entry: entry[:2])]

    def content(self, user: str, found: Found) -> JobContent | None:
        """What a job delivers; None if it was forgotten or taken back. Raises DamagedNotificationError."""
        if not self.exists():
            return None
        store = self.store(user)
        if found.notification is None:
            readers = {
                turn_key(found.session_id, found.first_message): read_turn,
                joined_key(found.session_id, found.first_message, found.last_message): read_joined,
            }
            if found.key not in readers:
                raise DamagedNotificationError
            turn = readers[found.key](store, found.session_id, found.first_message or 0, found.last_message or 0)
            return None if turn is None else JobContent(*turn)
        row = store.feed.notifications.get(found.notification)
        if row is None:
            return None
        content = row.content()
        if content is None or not is_job_of(found, user, row):
            raise DamagedNotificationError
        args, facts = content["args"], content["facts"]
        if row.kind == "session_end" and "messages" not in args:
            messages = _messages_until(store, row)
            return JobContent({"messages": messages, **args}, facts) if messages else None
        return JobContent(args, facts)

    def close(self) -> None:
        """Close the record, if it was opened here."""
        with self._lock:
            own, self._own = self._own, None
        if own is not None:
            own.close()

    def everyone(self) -> SessionStore:
        if self._opened is not None:
            return self._opened().scoped(Scope.everyone())
        with self._lock:
            if self._own is None:
                self._own = open_store(self._location)
            return self._own


def is_job_of(found: Found, user: str, row: Notification) -> bool:
    """Whether a job names a notification, and says the same about it; otherwise one of them was damaged."""
    return (user, *found[:3], found.notification) == (row.user_id, row.key, row.kind, row.session_id, row.id)


def _as_found(row: Notification) -> Found:
    return Found(row.key, row.kind, row.session_id, notification=row.id, owner=row.owner, created=row.created)


def _messages_until(store: SessionStore, row: Notification) -> list[dict[str, Any]]:
    """The messages of completed turns that a session itself had recorded when it ended."""
    return completed_messages(
        [
            message
            for message in store.messages.get_messages(row.session_id, include_inactive=True)
            if message["id"] <= row.after_message and message["copy_of"] is None and not message["is_summary"]
        ]
    )
