"""A conversation as it was held: its sessions in a row, without what compression repeated or wrote.

Reading around a message, from a message on, or at both ends costs as much as it returns.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from memoranda.db.sqlite import Connection
from memoranda.sessions.feed import COLUMNS, SEARCHABLE, FeedMessage, feed_message
from memoranda.sessions.store_part import StorePart

_SAID = SEARCHABLE


class Conversation(NamedTuple):
    """Which conversation a message belongs to, and the sessions of that conversation."""

    conversation_id: str
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Some messages of a conversation in order, and how many there are before and behind them."""

    place: Conversation
    messages: tuple[FeedMessage, ...]
    before: int
    after: int


class Conversations(StorePart):
    """What can be seen of conversations; messages taken back and other users' never are."""

    @contextmanager
    def one_view(self) -> Iterator[None]:
        """Everything read inside sees the same state of the store, and is read faster."""
        with self._db.reading():
            yield

    def conversation_of(self, session_id: str) -> Conversation | None:
        """The conversation that a session is part of."""
        with self._db.reading() as connection:
            return self._place(connection, session_id)

    def window_around(
        self, message_id: int, size: int, *, roles: Collection[str] = (), without: Collection[int] = ()
    ) -> Window | None:
        """Up to `size` messages on either side of one, which is always there itself; None when it cannot be seen.

        `roles` limits the neighbours, `without` leaves some out by their ids.
        """
        with self._db.reading() as connection:
            found = connection.execute(
                f"SELECT m.session_id FROM messages m WHERE m.id = ? AND {_SAID}", (message_id,)
            ).fetchone()
            place = self._place(connection, found[0]) if found else None
            if place is None:
                return None
            anchor = _select(connection, place, "m.id = ?", [message_id], "", 1)
            condition, values = _neighbours(roles, without)
            earlier = _select(connection, place, f"m.id < ?{condition}", [message_id, *values], "DESC", size)
            later = _select(connection, place, f"m.id > ?{condition}", [message_id, *values], "", size)
            messages = (*reversed(earlier), *anchor, *later)
            before = _count(connection, place, f"m.id < ?{condition}", [messages[0].id, *values])
            after = _count(connection, place, f"m.id > ?{condition}", [messages[-1].id, *values])
            return Window(place, messages, before, after)

    def messages_behind(
        self, place: Conversation, message_id: int, size: int, *, without: Collection[int] = ()
    ) -> Window:
        """Up to `size` messages of a conversation behind one; 0 is its beginning."""
        condition, values = _neighbours((), without)
        with self._db.reading() as connection:
            place = self._within(connection, place)
            messages = _select(connection, place, f"m.id > ?{condition}", [message_id, *values], "", size)
            first, last = (messages[0].id, messages[-1].id) if messages else (message_id + 1, message_id)
            before = _count(connection, place, f"m.id < ?{condition}", [first, *values])
            after = _count(connection, place, f"m.id > ?{condition}", [last, *values])
            return Window(place, tuple(messages), before, after)

    def ends_of(
        self,
        place: Conversation,
        size: int,
        *,
        outside: tuple[int, int],
        roles: Collection[str],
        without: Collection[int] = (),
    ) -> tuple[list[FeedMessage], list[FeedMessage]]:
        """The first and the last messages of a conversation that lie outside a range of ids."""
        condition, values = _neighbours(roles, without)
        with self._db.reading() as connection:
            place = self._within(connection, place)
            first = _select(connection, place, f"m.id < ?{condition}", [outside[0], *values], "", size)
            last = _select(connection, place, f"m.id > ?{condition}", [outside[1], *values], "DESC", size)
            return first, last[::-1]

    def _within(self, connection: Connection, place: Conversation) -> Conversation:
        """A place as far as it is in scope, wherever it came from."""
        visible = tuple(session_id for session_id in place.sessions if self._exists(connection, session_id))
        return Conversation(place.conversation_id, visible)

    def _place(self, connection: Connection, session_id: str) -> Conversation | None:
        rows = connection.execute(
            "SELECT id, conversation_id FROM sessions WHERE conversation_id ="
            f" (SELECT conversation_id FROM sessions WHERE id = ?) AND {self._seen}",
            (session_id, *self._scope.values),
        ).fetchall()
        members = tuple(row[0] for row in rows)
        return Conversation(rows[0][1], members) if session_id in members else None


def _neighbours(roles: Collection[str], without: Collection[int]) -> tuple[str, list[Any]]:
    condition = ""
    if roles:
        # A message without words, such as one that only calls a tool, says nothing to a reader.
        condition += f" AND m.role IN ({', '.join('?' * len(roles))}) AND m.content IS NOT NULL AND m.content <> ''"
    if without:
        # Numbers of ours, so they can stand in the statement; there may be more than it takes as values.
        condition += f" AND m.id NOT IN ({', '.join(str(int(number)) for number in without)})"
    return condition, list(roles)


def _select(
    connection: Connection, place: Conversation, condition: str, values: list[Any], order: str, size: int
) -> list[FeedMessage]:
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM messages m WHERE m.session_id IN ({', '.join('?' * len(place.sessions))})"
        f" AND {_SAID} AND {condition} ORDER BY m.id {order} LIMIT ?",
        (*place.sessions, *values, size),
    )
    return [feed_message(row) for row in rows]


def _count(connection: Connection, place: Conversation, condition: str, values: list[Any]) -> int:
    row = connection.execute(
        f"SELECT count(*) FROM messages m WHERE m.session_id IN ({', '.join('?' * len(place.sessions))})"
        f" AND {_SAID} AND {condition}",
        (*place.sessions, *values),
    ).fetchone()
    return int(row[0])
