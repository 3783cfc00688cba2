"""Reads what an answer shows of many conversations with a few statements, where every statement is a round trip.

A search shows a window around each hit, the ends of its conversation and facts about its session: a dozen statements
for each hit. In a file they take microseconds. On a server the same rows are read for all hits at once, and the answers
come from memory. Whatever was not read ahead is read as usual, so the results are the same.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memoranda.memory.record.conversations import Conversation, Conversations, SessionFacts, Window
from memoranda.memory.record.feed import SEARCHABLE, FeedMessage
from memoranda.storage.connection import Connection

_BEFORE, _AFTER, _COUNT_BEFORE, _COUNT_AFTER, _FIRST, _LAST = range(6)


@dataclass(frozen=True, slots=True)
class WindowShape:
    """The arguments of `window_around`, besides the message."""

    size: int
    roles: tuple[str, ...] = ()
    without: frozenset[int] = frozenset()
    counted: bool = True


@dataclass(frozen=True, slots=True)
class EndsShape:
    """The arguments of `ends_of`, besides the conversation and the range of ids."""

    size: int
    roles: tuple[str, ...]
    without: frozenset[int] = frozenset()


class _Found(NamedTuple):
    """A row of the statement that looks for windows: the id of a message, or a count."""

    message_id: int
    shape: int
    kind: int
    value: int


class ReadAhead(Conversations):
    """Conversations of which some windows, ends, messages and facts have been read already.

    For use inside `one_view`: what was read does not change.
    """

    def __init__(self, store: Conversations) -> None:
        super().__init__(store._engine, store._scope, store._redactor)
        self._messages: dict[int, FeedMessage] = {}
        self._read_ids: set[int] = set()
        self._facts: dict[str, SessionFacts | None] = {}
        self._windows: dict[tuple[int, WindowShape], Window | None] = {}
        self._ends: dict[tuple[str, EndsShape], tuple[list[FeedMessage], list[FeedMessage]]] = {}

    def read_facts(self, session_ids: Collection[str]) -> None:
        """Read the facts about sessions."""
        self._facts |= dict.fromkeys(session_ids) | self._session_facts(session_ids)

    def read_messages(self, ids: Iterable[int]) -> dict[int, FeedMessage]:
        """Read single messages of this scope; those that are rewound or deleted are missing."""
        wanted = {*ids}
        if missing := wanted - self._read_ids:
            with self._engine.reading() as connection:
                for message in self._select_by_id(connection, missing):
                    self._messages[message.id] = message
            self._read_ids |= missing
        return {number: self._messages[number] for number in sorted(wanted) if number in self._messages}

    def read_windows(
        self, message_ids: Collection[int], shapes: Sequence[WindowShape], ends: EndsShape | None = None
    ) -> None:
        """Read the windows of these shapes around messages, and the ends of their conversations."""
        ids = [number for number in message_ids if any((number, shape) not in self._windows for shape in shapes)]
        if not ids:
            return
        with self._engine.reading() as connection:
            conversations = self._conversations_of(connection, ids)
            found = self._look_around(connection, conversations, shapes, ends) if conversations else []
        parts: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
        for row in found:
            parts[row.message_id, row.shape, row.kind].append(row.value)
        self.read_messages(row.value for row in found if row.kind not in (_COUNT_BEFORE, _COUNT_AFTER))
        for number in ids:
            conversation = conversations.get(number)
            for place, shape in enumerate(shapes):
                window = None
                if conversation is not None:
                    some = {kind: sorted(parts[number, place, kind]) for kind in range(_FIRST)}
                    window = self._window(number, conversation, shape, some)
                self._windows[number, shape] = window
            if conversation is not None and ends is not None:
                first, last = (sorted(parts[number, len(shapes), kind]) for kind in (_FIRST, _LAST))
                self._ends[conversation.conversation_id, ends] = (
                    self._known(first[: ends.size]), self._known(last[max(0, len(last) - ends.size) :]),
                )  # fmt: skip

    def session_facts(self, session_id: str) -> SessionFacts | None:
        return self._facts[session_id] if session_id in self._facts else super().session_facts(session_id)

    def window_around(
        self,
        message_id: int,
        size: int,
        *,
        roles: Collection[str] = (),
        without: Collection[int] = (),
        counted: bool = True,
    ) -> Window | None:
        key = (message_id, WindowShape(size, tuple(roles), frozenset(without), counted))
        if key in self._windows:
            return self._windows[key]
        return super().window_around(message_id, size, roles=roles, without=without, counted=counted)

    def messages_by_id(self, conversation: Conversation, ids: Collection[int]) -> dict[int, FeedMessage]:
        if not self._read_ids.issuperset(ids):
            return super().messages_by_id(conversation, ids)
        return {
            number: self._messages[number]
            for number in sorted(ids)
            if number in self._messages and self._messages[number].session_id in conversation.sessions
        }

    def ends_of(
        self,
        conversation: Conversation,
        size: int,
        *,
        outside: tuple[int, int],
        roles: Collection[str],
        without: Collection[int] = (),
    ) -> tuple[list[FeedMessage], list[FeedMessage]]:
        known = self._ends.get((conversation.conversation_id, EndsShape(size, tuple(roles), frozenset(without))))
        if known is None:
            return super().ends_of(conversation, size, outside=outside, roles=roles, without=without)
        # The first messages before an id are, of the very first ones, those before it.
        first, last = known
        return [message for message in first if message.id < outside[0]], [
            message for message in last if message.id > outside[1]
        ]

    def _window(
        self, message_id: int, conversation: Conversation, shape: WindowShape, parts: dict[int, list[int]]
    ) -> Window | None:
        """A window from the ids and counts of each session of the conversation, as `window_around` builds it."""
        size = shape.size
        earlier, later = self._known(parts[_BEFORE]), self._known(parts[_AFTER])
        earlier, later = earlier[max(0, len(earlier) - size) :], later[: size + 1]
        if not later or later[0].id != message_id:
            return None
        before = sum(parts[_COUNT_BEFORE]) - size if len(earlier) == size else 0
        after = sum(parts[_COUNT_AFTER]) - size if len(later) - 1 == size else 0
        messages = (*earlier, *later)
        return Window(conversation, messages, before if shape.counted else 0, after if shape.counted else 0)

    def _known(self, ids: Iterable[int]) -> list[FeedMessage]:
        return [self._messages[number] for number in ids if number in self._messages]

    def _conversations_of(self, connection: Connection, message_ids: Collection[int]) -> dict[int, Conversation]:
        """The conversations of messages that are in scope."""
        condition, values = self._dialect.one_of("m.id", message_ids)
        # With OFFSET, every row is looked up by its index, whatever the server estimates.
        rows = connection.execute(
            "SELECT m.id, own.conversation_id, member.id FROM messages m CROSS JOIN LATERAL"
            f" (SELECT conversation_id FROM sessions WHERE id = m.session_id AND {self._in_scope} OFFSET 0) AS own"
            " CROSS JOIN LATERAL (SELECT id FROM sessions WHERE conversation_id = own.conversation_id"
            f" AND {self._in_scope} OFFSET 0) AS member WHERE {condition} AND {SEARCHABLE}",
            (*self._scope.values, *self._scope.values, *values),
        )
        members: dict[int, list[str]] = {}
        names: dict[int, str] = {}
        for message_id, conversation_id, session_id in rows:
            names[message_id] = conversation_id
            members.setdefault(message_id, []).append(session_id)
        return {number: Conversation(names[number], tuple(some)) for number, some in members.items()}

    def _look_around(
        self,
        connection: Connection,
        conversations: dict[int, Conversation],
        shapes: Sequence[WindowShape],
        ends: EndsShape | None,
    ) -> list[_Found]:
        """For each message and each session of its conversation: the ids before and after it, the ends, and counts."""
        texts: list[str] = []
        values: list[Any] = []

        def add(place: int, kind: int, condition: str, extra: Sequence[Any], order: str, limit: int) -> None:
            texts.append(
                f"(SELECT {place}, {kind}, m.id FROM messages m WHERE m.session_id = hit.session AND {SEARCHABLE}"
                f" AND {condition} ORDER BY m.id {order} LIMIT ?)"
            )
            values.extend((*extra, limit))

        for place, shape in enumerate(shapes):
            condition, extra = self._neighbour_filter(shape.roles, shape.without)
            either = f"m.id >= hit.message AND (m.id = hit.message OR (1 = 1{condition}))"
            add(place, _BEFORE, f"m.id < hit.message{condition}", extra, "DESC", shape.size)
            add(place, _AFTER, either, extra, "", shape.size + 1)
            for kind, comparison in ((_COUNT_BEFORE, "<"), (_COUNT_AFTER, ">")) if shape.counted else ():
                texts.append(
                    f"(SELECT {place}, {kind}, count(*) FROM messages m WHERE m.session_id = hit.session"
                    f" AND {SEARCHABLE} AND m.id {comparison} hit.message{condition})"
                )
                values.extend(extra)
        if ends is not None:
            condition, extra = self._neighbour_filter(ends.roles, ends.without)
            for kind, order in ((_FIRST, ""), (_LAST, "DESC")):
                add(len(shapes), kind, f"1 = 1{condition}", extra, order, ends.size)
        pairs = [(number, name) for number, each in conversations.items() for name in each.sessions]
        rows = connection.execute(
            "SELECT hit.message, part.shape, part.kind, part.value FROM"
            " unnest(?::bigint[], ?::text[]) AS hit(message, session)"
            f" CROSS JOIN LATERAL ({' UNION ALL '.join(texts)}) AS part(shape, kind, value)",
            ([number for number, _ in pairs], [name for _, name in pairs], *values),
        )
        return [_Found(*row) for row in rows]
