"""Notifications that wait for external memories: what a provider is to receive besides the turns.

A completed turn is in the record with its messages, and needs no row here. Everything else that a provider receives (a
memory write, the end of a session, a switch to another one, finished work of a delegate, a deletion) is a row, until
that provider has received it. Rows are read in the order of their commits, like messages; `after_message` says which
messages came before. The text of a row belongs to the user, like that of a message.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.memory.record.message_rows import signed_crc32
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, FeedTable, readable_rows
from memoranda.storage.position import Position
from memoranda.support.lazy_dataclass import dataclass

_BATCH_SIZE = 500
_COLUMNS = "id, provider, user_id, kind, session_id, key, payload, after_message, owner, created, checksum"
_COVERED = ("provider", "user_id", "kind", "session_id", "key", "payload")


@dataclass(frozen=True, slots=True)
class NewNotification:
    """A notification to be recorded; `user` is empty for the home's owner, `owner` is the process that delivers it."""

    provider: str
    user: str
    kind: str
    session_id: str
    key: str
    payload: dict[str, Any]
    owner: str
    created: float


class Notification(NamedTuple):
    id: int
    provider: str
    user_id: str
    kind: str
    session_id: str
    key: str
    payload: str
    after_message: int
    owner: str
    created: float
    checksum: int

    def content(self) -> dict[str, Any] | None:
        """The payload; None if it is not as it was recorded."""
        try:
            content = json.loads(self.payload) if _checksum(self._asdict()) == self.checksum else None
        except (ValueError, TypeError, RecursionError):
            return None
        return content if isinstance(content, dict) else None


class FeedHeads(NamedTuple):
    """How far a provider has been served: the last message and the last notification that were read for it."""

    messages: Position = Position()
    notifications: Position = Position()


class Notifications(StorePart):
    """The notifications of one user, or of all; most calls name the user, because a provider serves one at a time."""

    def add(self, new: NewNotification) -> None:
        """Record a notification; a key that the provider has already adds nothing. It is durable when this returns."""
        payload, count = _to_json(new.payload), 0
        if not self._is_clean([payload]):
            redacted, count = self._redact(json.loads(payload))
            payload = _to_json(redacted)
        row = {
            "provider": new.provider,
            "user_id": new.user,
            "kind": new.kind,
            "session_id": self._stored_name(new.session_id),
            "key": self._stored_name(new.key),
            "payload": payload,
            "owner": new.owner,
            "created": new.created,
        }
        row["checksum"] = _checksum(row)
        names = ", ".join(row)
        statement = (
            f"INSERT INTO notifications ({names}, after_message)"
            f" VALUES ({', '.join('?' * len(row))}, (SELECT COALESCE(max(id), 0) FROM messages))"
            " ON CONFLICT (provider, user_id, key) DO NOTHING"
        )
        with self._engine.writing() as connection:
            connection.execute(statement, list(row.values()))
            count_redactions(connection, count)

    def heads(self, user: str) -> FeedHeads:
        """How far the messages and notifications of a user can be read now."""
        own = Condition("user_id = ?", (user,))
        return FeedHeads(
            *self._engine.wait_for_feed((FeedTable("messages", "id"), FeedTable("notifications", "id", own)))
        )

    def after(self, provider: str, user: str, position: Position) -> list[Notification]:
        """The notifications for a provider and a user after a position, in order."""
        condition, values = self._dialect.after("id", position)
        order = self._dialect.position_order("id")
        return self._select(f"provider = ? AND user_id = ? AND {condition} ORDER BY {order}", (provider, user, *values))

    def until(self, provider: str, user: str, position: Position) -> list[Notification]:
        """The notifications for a provider and a user up to a position."""
        condition, values = self._dialect.up_to("id", position)
        return self._select(f"provider = ? AND user_id = ? AND {condition}", (provider, user, *values))

    def get(self, number: int) -> Notification | None:
        """One notification; None if its provider has received it, or it was forgotten."""
        return next(iter(self._select("id = ?", (number,))), None)

    def select(self, provider: str | None, user: str | None) -> list[Notification]:
        """All notifications, of one provider and one user, or of all, in order."""
        condition, values = _filter(provider, user)
        return self._select(f"{condition} ORDER BY id", values)

    def recipients(self, provider: str | None, user: str | None) -> list[tuple[str, str]]:
        """The providers and users for whom something waits."""
        condition, values = _filter(provider, user)
        rows = self._fetch_all(f"SELECT DISTINCT provider, user_id FROM notifications WHERE {condition}", values)
        return [(name, whose) for name, whose in rows]

    def replace(self, row: Notification, content: dict[str, Any]) -> None:
        """Change the payload of a notification, because a text was forgotten; a damaged one stays recognisable."""
        changed = row._replace(payload=_to_json(content))
        kept = row.checksum if row.content() is None else _checksum(changed._asdict())
        with self._engine.writing() as connection:
            connection.execute(
                "UPDATE notifications SET payload = ?, checksum = ? WHERE id = ?", (changed.payload, kept, row.id)
            )

    def remove(self, numbers: Collection[int]) -> None:
        """Remove notifications that were delivered, or must not be."""
        if not numbers:
            return
        with self._engine.writing() as connection:
            for batch in _batches(numbers):
                condition, values = self._dialect.one_of("id", batch)
                connection.execute(f"DELETE FROM notifications WHERE {condition}", values)

    def remove_of(self, provider: str | None, user: str | None, session_ids: Collection[str] | None) -> None:
        """Remove the notifications of a provider, a user and sessions; None stands for all."""
        condition, values = _filter(provider, user)
        with self._engine.writing() as connection:
            if session_ids is None:
                connection.execute(f"DELETE FROM notifications WHERE {condition}", values)
            for batch in _batches(self._stored_names(session_ids or ())):
                among, ids = self._dialect.one_of("session_id", batch)
                connection.execute(f"DELETE FROM notifications WHERE {condition} AND {among}", (*values, *ids))
        self._engine.shrink_log()

    def _select(self, condition: str, values: Sequence[Any]) -> list[Notification]:
        with self._engine.reading() as connection:
            rows = readable_rows(connection, f"SELECT {_COLUMNS} FROM notifications WHERE {condition}", values)
            return [Notification(*row) for row in rows]


def remove_of_session(connection: Connection, session_id: str) -> None:
    """Remove the notifications of a session, in the transaction that deletes it."""
    connection.execute("DELETE FROM notifications WHERE session_id = ?", (session_id,))


def _filter(provider: str | None, user: str | None) -> tuple[str, tuple[str, ...]]:
    given = [(name, value) for name, value in (("provider", provider), ("user_id", user)) if value is not None]
    return " AND ".join(["1 = 1", *(f"{name} = ?" for name, _ in given)]), tuple(value for _, value in given)


def _checksum(row: dict[str, Any]) -> int:
    """Damage must neither change what a provider receives nor who receives it."""
    return signed_crc32(json.dumps([row[name] for name in _COVERED], default=repr).encode())


def _to_json(payload: object) -> str:
    """A payload as JSON; a value that JSON does not know is written as text."""
    try:
        return json.dumps(payload, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"A notification for a provider cannot be written as JSON: {error}.") from error


def _batches(values: Collection[Any]) -> Iterator[list[Any]]:
    ordered = list(values)
    for start in range(0, len(ordered), _BATCH_SIZE):
        yield ordered[start : start + _BATCH_SIZE]
