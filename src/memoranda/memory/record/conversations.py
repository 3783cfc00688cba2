"""Reads conversations across their sessions, without the copies and summaries that compression wrote.

Reading around a message, after a message, or at both ends costs as much as it returns.

A search shows a window around each hit, the ends of its conversation and facts about its session: a dozen statements
for each hit. In a file they take microseconds. On a server, where every statement is a round trip, `ReadAhead` reads
the same rows for all hits at once, and the answers come from memory. Whatever was not read ahead is read as usual, so
the results are the same.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from memoranda.memory.record.checksums import CHECKSUM, COVERED, report_damage
from memoranda.memory.record.feed import COLUMNS, SEARCHABLE, FeedMessage, feed_message
from memoranda.memory.record.message_rows import DAMAGED, matches
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.engine import Statement
from memoranda.support.lazy_dataclass import dataclass

_FEED_COLUMNS = [name.strip().removeprefix("m.") for name in COLUMNS.split(",")]
# What the checksum of a message covers besides the columns of the feed, and the checksum.
_OTHERS = [*(name for name in COVERED if name not in _FEED_COLUMNS), CHECKSUM]
_OTHER_COLUMNS = ", ".join(f"m.{name}" for name in _OTHERS)
_select_covered = itemgetter(*([*_FEED_COLUMNS, *_OTHERS].index(name) for name in COVERED))
_SELECT_FACTS = "SELECT id, title, source, model, project, parent_session_id, started_at FROM sessions"
_id_of = itemgetter(0)
_EXTRA = len(_FEED_COLUMNS) + _OTHERS.index("extra")


class Conversation(NamedTuple):
    """A conversation and its sessions, as far as they are in scope."""

    conversation_id: str
    sessions: tuple[str, ...]


class SessionFacts(NamedTuple):
    """What an answer says about the session of a hit."""

    title: str | None
    source: str
    model: str | None
    project: str | None
    parent_session_id: str | None
    started_at: float


@dataclass(frozen=True, slots=True)
class Window:
    """Some messages of a conversation in order, and how many come before and after them."""

    conversation: Conversation
    messages: tuple[FeedMessage, ...]
    before: int
    after: int


class _Part(NamedTuple):
    """Some messages of a conversation: the first that meet a condition, or with DESC the last."""

    condition: str
    values: tuple[Any, ...]
    order: str = ""
    size: int = 1


class Conversations(StorePart):
    """Windows over the messages of conversations; they never contain rewound messages or those of other users."""

    @property
    def batches_reads(self) -> bool:
        """Whether `ReadAhead` is faster than reading one conversation after the other."""
        return self._dialect.batches_reads

    def conversation_of(self, session_id: str) -> Conversation | None:
        """The conversation that a session belongs to; None if it is out of scope."""
        return self._conversation("?", self._stored_name(session_id))

    def session_facts(self, session_id: str) -> SessionFacts | None:
        """The facts about a session; None if it is out of scope or deleted."""
        session_id = self._stored_name(session_id)
        return self.facts_by_session([session_id]).get(session_id)

    def facts_by_session(self, session_ids: Collection[str], *, parents: bool = False) -> dict[str, SessionFacts]:
        """The facts about sessions by their stored ids; those out of scope or deleted are missing.

        With `parents` also those about the sessions that they come from.
        """
        names = self._stored_names(session_ids)
        statements = [self._facts_statement(names)]
        if parents:
            condition, values = self._dialect.one_of("id", names)
            named = f"id IN (SELECT parent_session_id FROM sessions WHERE {condition})"
            statements.append((f"{_SELECT_FACTS} WHERE {named} AND {self._in_scope}", (*values, *self._scope.values)))
        return _as_facts(chain.from_iterable(self._read_at_once(*statements)))

    def _facts_statement(self, session_ids: Collection[str]) -> Statement:
        condition, values = self._dialect.one_of("id", session_ids)
        return (f"{_SELECT_FACTS} WHERE {condition} AND {self._in_scope}", (*values, *self._scope.values))

    def window_around(
        self,
        message_id: int,
        size: int,
        *,
        roles: Collection[str] = (),
        without: Collection[int] = (),
        counted: bool = True,
    ) -> Window | None:
        """Up to `size` messages on either side of a message, and the message itself; None if it is out of scope.

        `roles` filters the neighbours, `without` omits some by their ids. Unless `counted`, `before` and `after` are 0.
        """
        with self.view_in_file():
            conversation = self._conversation(
                f"SELECT m.session_id FROM messages m WHERE m.id = ? AND {SEARCHABLE}", message_id
            )
            if conversation is None:
                return None
            condition, values = self._neighbour_filter(roles, without)
            earlier = _Part(f"m.id < ?{condition}", (message_id, *values), "DESC", size)
            others = _Part(f"m.id >= ? AND (m.id = ?{_as_alternative(condition)})", (message_id, message_id, *values))
            messages = self._select(conversation, earlier, others._replace(size=size + 1))
            position = next((place for place, message in enumerate(messages) if message.id == message_id), None)
            if position is None:
                return None
            before = after = 0
            # Only a full side has more.
            if counted and size in (position, len(messages) - position - 1):
                counting = self._count_statement(conversation, messages[0].id, messages[-1].id, condition, values)
                (((before, after),),) = self._read_at_once(counting)
            return Window(conversation, tuple(messages), before, after)

    def messages_by_id(self, conversation: Conversation, ids: Collection[int]) -> dict[int, FeedMessage]:
        """Single messages of a conversation; those that are elsewhere, rewound or deleted are missing."""
        condition, values = self._dialect.one_of("m.id", ids)
        found = self._select(conversation, _Part(condition, tuple(values), size=len(ids)))
        return {message.id: message for message in found}

    def messages_behind(
        self, conversation: Conversation, message_id: int, size: int, *, without: Collection[int] = ()
    ) -> Window:
        """Up to `size` messages of a conversation after a message id; 0 is the start."""
        condition, values = self._neighbour_filter((), without)
        conversation, (rows, ((before, after),)) = self._read_in_scope(
            conversation,
            lambda visible: (
                self._select_statement(visible, _Part(f"m.id > ?{condition}", (message_id, *values), size=size)),
                self._count_statement(visible, message_id + 1, message_id, condition, values),
            ),
        )
        messages = _in_order(rows)
        return Window(conversation, tuple(messages), before, after - len(messages))

    def last_messages(
        self, conversations: Collection[str], size: int, roles: Collection[str], *others: Statement
    ) -> tuple[dict[str, list[FeedMessage]], list[list[Any]]]:
        """The last messages of each conversation, in order, and the rows of other statements, in one round trip."""
        condition, values = self._neighbour_filter(roles, ())
        chosen = self._dialect.one_of("sessions.conversation_id", conversations)
        # Each session is read from its end, so that a long one costs no more than a short one.
        start = (
            f"SELECT m.id FROM messages m WHERE m.session_id = sessions.id AND {SEARCHABLE}{condition}"
            " ORDER BY m.id DESC LIMIT 1 OFFSET ?"
        )
        statement = (
            f"SELECT {COLUMNS}, {_OTHER_COLUMNS}, sessions.conversation_id FROM sessions JOIN messages m"
            f" ON m.session_id = sessions.id AND m.id >= COALESCE(({start}), 0)"
            f" WHERE {chosen.text} AND {self._in_scope} AND {SEARCHABLE}{condition}",
            (*values, size - 1, *chosen.values, *self._scope.values, *values),
        )
        rows, *found = self._read_at_once(statement, *others)
        last: defaultdict[str, list[FeedMessage]] = defaultdict(list)
        for row in sorted(rows, key=_id_of):
            last[row[-1]].append(_checked_message(row[:-1]))
        return {name: messages[-size:] for name, messages in last.items()}, found

    def ends_of(
        self,
        conversation: Conversation,
        size: int,
        *,
        outside: tuple[int, int],
        roles: Collection[str],
        without: Collection[int] = (),
    ) -> tuple[list[FeedMessage], list[FeedMessage]]:
        """The first and the last messages of a conversation that are outside a range of ids."""
        condition, values = self._neighbour_filter(roles, without)
        first = _Part(f"m.id < ?{condition}", (outside[0], *values), size=size)
        last = _Part(f"m.id > ?{condition}", (outside[1], *values), "DESC", size)
        # If the ends overlap, a message may be in both.
        _, found = self._read_in_scope(
            conversation, lambda visible: [self._select_statement(visible, end) for end in (first, last)]
        )
        return _in_order(found[0]), _in_order(found[1])

    def _read_in_scope(
        self, conversation: Conversation, statements: Callable[[Conversation], Sequence[Statement]]
    ) -> tuple[Conversation, list[list[Any]]]:
        """The conversation without sessions out of scope, wherever the value came from, and what is read of it."""
        condition = self._dialect.one_of("id", conversation.sessions)
        in_scope = f"SELECT id FROM sessions WHERE {condition.text} AND {self._in_scope}"
        with self.view_in_file():
            members, *found = self._read_at_once(
                (in_scope, (*condition.values, *self._scope.values)), *statements(conversation)
            )
            visible = {row[0] for row in members}
            sessions = tuple(session_id for session_id in conversation.sessions if session_id in visible)
            if sessions == conversation.sessions:
                return conversation, found
            # Nothing of what was read is shown: some of it is of sessions out of scope.
            conversation = Conversation(conversation.conversation_id, sessions)
            return conversation, self._read_at_once(*statements(conversation))

    def _conversation(self, member: str, value: object) -> Conversation | None:
        """The conversation of a session; `member` is a query for its id, with one value."""
        statement = (
            f"SELECT id, conversation_id, id = ({member}) FROM sessions WHERE conversation_id ="
            f" (SELECT conversation_id FROM sessions WHERE id = ({member})) AND {self._in_scope}"
        )
        (rows,) = self._read_at_once((statement, (value, value, *self._scope.values)))
        # The others are in scope only together with the session itself.
        return Conversation(rows[0][1], tuple(row[0] for row in rows)) if any(row[2] for row in rows) else None

    def _select(self, conversation: Conversation, *parts: "_Part") -> list[FeedMessage]:
        (rows,) = self._read_at_once(self._select_statement(conversation, *parts))
        return _in_order(rows)

    def _select_statement(self, conversation: Conversation, *parts: "_Part") -> Statement:
        """The messages of some parts of a conversation."""
        member, sessions = self._dialect.one_of("m.session_id", conversation.sessions)
        texts: list[str] = []
        values: list[Any] = []
        for number, part in enumerate(parts):
            texts.append(
                f"SELECT * FROM (SELECT {COLUMNS}, {_OTHER_COLUMNS} FROM messages m WHERE {member} AND {SEARCHABLE}"
                f" AND {part.condition} ORDER BY m.id {part.order} LIMIT ?) AS part{number}"
            )
            values += (*sessions, *part.values, part.size)
        return " UNION ALL ".join(texts), values

    def _count_statement(
        self, conversation: Conversation, first: int, last: int, condition: str, values: Sequence[Any]
    ) -> Statement:
        """How many messages of a conversation come before the first id, and how many after the last."""
        member, sessions = self._dialect.one_of("m.session_id", conversation.sessions)
        return (
            "SELECT count(CASE WHEN m.id < ? THEN 1 END), count(CASE WHEN m.id > ? THEN 1 END) FROM messages m"
            f" WHERE {member} AND {SEARCHABLE}{condition}",
            (first, last, *sessions, *values),
        )

    def _neighbour_filter(self, roles: Collection[str], without: Collection[int]) -> tuple[str, list[Any]]:
        text = ""
        values: Sequence[Any] = ()
        if roles:
            condition, values = self._dialect.one_of("m.role", roles)
            # A message without text, such as one that only calls a tool, tells a reader nothing.
            text += f" AND {condition} AND m.content IS NOT NULL AND m.content <> ''"
        if without:
            # A statement may have fewer values than there are ids; ids are integers, so they are safe in its text.
            text += f" AND m.id NOT IN ({', '.join(map(str, map(int, without)))})"
        return text, list(values)


def _as_facts(rows: Iterable[Sequence[Any]]) -> dict[str, SessionFacts]:
    return {row[0]: SessionFacts(*row[1:]) for row in rows}


def _in_order(rows: Iterable[Sequence[Any]]) -> list[FeedMessage]:
    return [_checked_message(row) for row in sorted(rows, key=_id_of)]


def _as_alternative(condition: str) -> str:
    """A condition that begins with AND, for use after OR."""
    return f" OR (1 = 1{condition})"


def _checked_message(row: Sequence[Any]) -> FeedMessage:
    """Decode a row of the feed's columns and _OTHERS, and mark the message if it does not match its checksum."""
    message = feed_message(row[: len(_FEED_COLUMNS)])
    stored, extra = row[-1], row[_EXTRA]
    if stored is not None and not matches(_select_covered(row), stored):
        report_damage(message.session_id, message.id)
        return message._replace(damaged=True)
    return message if extra is None or DAMAGED not in extra else message._replace(damaged=True)


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

    What was read does not change, whatever happens to the record.
    """

    def __init__(self, store: Conversations) -> None:
        super().__init__(store._engine, store._scope, store._redactor)
        self._messages: dict[int, FeedMessage] = {}
        self._read_ids: set[int] = set()
        self._facts: dict[str, SessionFacts | None] = {}
        self._windows: dict[tuple[int, WindowShape], Window | None] = {}
        self._ends: dict[tuple[str, EndsShape], tuple[list[FeedMessage], list[FeedMessage]]] = {}

    def read_facts(self, session_ids: Collection[str]) -> None:
        self._facts |= dict.fromkeys(session_ids) | self.facts_by_session(session_ids)

    def _add_messages(self, rows: Iterable[Sequence[Any]], ids: Collection[int]) -> None:
        self._messages |= {message.id: message for message in map(_checked_message, rows)}
        self._read_ids |= {*ids}

    def read_windows(
        self,
        message_ids: Collection[int],
        shapes: Sequence[WindowShape],
        ends: EndsShape | None = None,
        *,
        messages: Collection[int] = (),
        session_ids: Collection[str] = (),
    ) -> None:
        """Read the windows of these shapes around messages, and the ends of their conversations, in one round trip.

        With it come single `messages`, without those that are rewound or deleted, and the facts about sessions.
        """
        ids = [number for number in message_ids if any((number, shape) not in self._windows for shape in shapes)]
        if not (ids or messages or session_ids):
            return
        facts, single, members, around = self._read_at_once(
            self._facts_statement(session_ids),
            self._messages_statement(messages),
            self._conversations_statement(ids),
            self._around_statement(ids, shapes, ends),
        )
        self._facts |= dict.fromkeys(session_ids) | _as_facts(facts)
        self._add_messages(single, messages)
        conversations = _as_conversations(members)
        found = self._read_around(around)
        parts: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
        for row in found:
            parts[row.message_id, row.shape, row.kind].append(row.value)
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
        known = self.known_messages(ids)
        return {number: message for number, message in known.items() if message.session_id in conversation.sessions}

    def known_messages(self, ids: Iterable[int]) -> dict[int, FeedMessage]:
        """Those of some messages that were read, in order."""
        return {number: self._messages[number] for number in sorted(ids) if number in self._messages}

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

    def _messages_statement(self, ids: Collection[int]) -> Statement:
        condition, values = self._dialect.one_of("m.id", ids)
        return (
            f"SELECT {COLUMNS}, {_OTHER_COLUMNS} FROM messages m JOIN sessions ON sessions.id = m.session_id"
            f" WHERE {condition} AND {SEARCHABLE} AND {self._in_scope}",
            (*values, *self._scope.values),
        )

    def _conversations_statement(self, message_ids: Collection[int]) -> Statement:
        """The conversations of messages that are in scope, with their sessions."""
        condition, values = self._dialect.one_of("m.id", message_ids)
        # With OFFSET, every row is looked up by its index, whatever the server estimates.
        return (
            "SELECT m.id, own.conversation_id, member.id FROM messages m CROSS JOIN LATERAL"
            f" (SELECT conversation_id FROM sessions WHERE id = m.session_id AND {self._in_scope} OFFSET 0) AS own"
            " CROSS JOIN LATERAL (SELECT id FROM sessions WHERE conversation_id = own.conversation_id"
            f" AND {self._in_scope} OFFSET 0) AS member WHERE {condition} AND {SEARCHABLE}",
            (*self._scope.values, *self._scope.values, *values),
        )

    def _around_statement(
        self, message_ids: Collection[int], shapes: Sequence[WindowShape], ends: EndsShape | None
    ) -> Statement:
        """For each message and each session of its conversation: the ids before and after it, the ends, and counts.

        The messages themselves come in the same rows, each of them once.
        """
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
        hits, of_hits = self._conversations_statement(message_ids)
        counts = f"kind IN ({_COUNT_BEFORE}, {_COUNT_AFTER})"
        statement = (
            f"WITH hit(message, conversation, session) AS MATERIALIZED ({hits}),"
            " found AS (SELECT hit.message, part.shape, part.kind, part.value FROM hit"
            f" CROSS JOIN LATERAL ({' UNION ALL '.join(texts)}) AS part(shape, kind, value)), numbered AS (SELECT *,"
            f" NOT {counts} AND row_number() OVER (PARTITION BY {counts}, value) = 1 AS is_first FROM found)"
            f" SELECT found.message, found.shape, found.kind, found.value, {COLUMNS}, {_OTHER_COLUMNS}"
            " FROM numbered AS found LEFT JOIN LATERAL"
            " (SELECT * FROM messages WHERE id = found.value AND found.is_first OFFSET 0) AS m ON true"
        )
        return (statement, (*of_hits, *values))

    def _read_around(self, rows: Sequence[Sequence[Any]]) -> list[_Found]:
        """What the statement found; keeps the messages that came with it."""
        width = len(_Found._fields)
        messages = [row[width:] for row in rows if row[width] is not None]
        self._add_messages(messages, [message[0] for message in messages])
        return [_Found(*row[:width]) for row in rows]


def _as_conversations(rows: Iterable[Sequence[Any]]) -> dict[int, Conversation]:
    """The conversations of messages, by their ids."""
    members: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for message_id, conversation_id, session_id in rows:
        members[message_id, conversation_id].append(session_id)
    return {number: Conversation(name, tuple(sessions)) for (number, name), sessions in members.items()}
