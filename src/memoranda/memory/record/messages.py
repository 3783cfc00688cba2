"""Appends and reads messages.

On an engine where every statement is a round trip, one statement appends: it locks the session, counts the messages,
inserts them and returns their ids. Every such append has a random number: if the connection is lost, the statement is
executed again, and the index over these numbers refuses the rows if the first attempt was committed after all.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import chain, islice
from operator import is_not, itemgetter
from typing import Any, NamedTuple

from memoranda.errors import ContinuedError, SessionError
from memoranda.memory.record.checksums import CHECKSUM, resealed
from memoranda.memory.record.copies import CHECKED_COLUMNS, JOIN_ORIGINAL, SAME, as_copy, decode_checked
from memoranda.memory.record.message_rows import (
    WRITTEN,
    EncodedMessage,
    Message,
    as_chat,
    checksum_of_row,
    encode_redacted,
    recount,
)
from memoranda.memory.record.schema import MESSAGES, hour_of
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import (
    StoredName,
    StorePart,
    count_redactions,
    counting_statements,
    refuse_newer,
    unknown_session,
)
from memoranda.safety.redaction import Redactor
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Dialect, Engine, Statement, readable_rows
from memoranda.storage.position import START, Position
from memoranda.storage.schema import Column

_TIMESTAMP = WRITTEN.index("timestamp")
_COPY_OF = WRITTEN.index("copy_of")
_IS_SUMMARY = WRITTEN.index("is_summary")
_ARRAY_TYPES = {"text": "text[]", "integer": "bigint[]", "real": "double precision[]"}
_COLUMNS: dict[str, Column] = {column.name: column for column in MESSAGES.columns}
# Longer appends are imports, which a round trip more does not slow down.
_MAX_IN_ONE_STATEMENT = 1000
_IF_LATER = "own_message_count = 0 OR last_active < ?"

# The fields that identify a message; they contain no prose.
_IDENTIFYING = ("external_id", "platform_message_id", "message_id", "tool_call_id", "role", "timestamp")

# The ids of deleted messages are never used again.
_LAST_DELETED = "(SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'last_deleted_message')"
_ROLE = WRITTEN.index("role")
_CONTENT = WRITTEN.index("content")
_EXTERNAL_ID = WRITTEN.index("external_id")
_CONTENT_FUNCTION = "given_content"
_NO_LIMIT = 2**62
_is_filled = partial(is_not, None)
_PART_MESSAGES = 100
_PART_CHARACTERS = 1_000_000
_BATCH_SIZE = 500
# How many messages are searched for credentials at once; if there is one, each of them is searched again.
_SEARCHED_TOGETHER = 32


class LiveIds(NamedTuple):
    """The ids of what a session's context contains, for `Messages.live_ids` to read only what is new."""

    size: int = 0
    last: int = 0
    ids: frozenset[int] = frozenset()
    conversation_id: str | None = None


NO_LIVE_IDS = LiveIds()


class Messages(StorePart):
    """The messages of sessions. `on_append` is called after every append, when its transaction is durable."""

    def __init__(
        self, engine: Engine, scope: Scope, redactor: Redactor | None, on_append: Callable[[], object] | None = None
    ) -> None:
        super().__init__(engine, scope, redactor)
        self._on_append = on_append
        self._count_within_hour, self._count_always = counting_statements(self._in_scope)

    def append_message(self, /, session_id: str, role: str, content: Any = None, **fields: Any) -> int:
        """Append one message and return its id; the message is durable by then. See `SessionDB.append_message`."""
        return self.append_messages(session_id, [{"role": role, "content": content, **fields}])[0]

    def append_messages(
        self,
        session_id: str,
        messages: Iterable[Mapping[str, Any]],
        *,
        fail_if_continued: bool = False,
        last_seen: int | None = None,
    ) -> list[int]:
        """Append several messages in one transaction: all of them or none. See `SessionDB.append_messages`."""
        session_id = self._stored_name(session_id)
        encoded = self.encode_all(messages)
        at_once = self._single_append(session_id) if last_seen is None else None

        def append(connection: Connection) -> list[int]:
            if fail_if_continued or at_once:
                self._engine.lock_session(connection, session_id)
                successor = self._read_successor(connection, session_id)
                if fail_if_continued and successor is not None:
                    raise ContinuedError(session_id, successor)
            if at_once and (stored := at_once.find_stored(connection)):
                return stored
            return self.append_encoded(connection, session_id, encoded, last_seen)

        ids = at_once.execute(encoded, fail_if_continued=fail_if_continued) if at_once else []
        ids = ids or self._engine.write(append)
        self.notify_appended()
        return ids

    def append_and_clear(self, session_id: str, message: dict[str, Any]) -> list[int]:
        """Append one message and clear it, so that a very long text is in memory only as often as SQLite needs it.

        It is not cleared if it was stored before, and on a server. The transaction is not repeated: if it fails, the
        message may be empty, and must be read from its source again.
        """
        if self._dialect.one_statement_appends:
            return self.append_messages(session_id, [message])
        session_id = self._stored_name(session_id)
        encoded = self.encode_all([message])
        with self._engine.writing() as connection:
            if self._are_new(connection, session_id, [encoded[0].row]):
                # Before the message is cleared: it may say that there is no such session.
                self.count(connection, session_id, encoded)
                count_redactions(connection, encoded[0].secrets)
                message.clear()
                ids = [self.insert(connection, session_id, encoded[0].row, clear=True)[0]]
            else:
                ids = self.append_encoded(connection, session_id, encoded)
        self.notify_appended()
        return ids

    def append_encoded(
        self,
        connection: Connection,
        session_id: StoredName,
        encoded: list[EncodedMessage],
        last_seen: int | None = None,
    ) -> list[int]:
        """Append in the transaction of another part of the store, which calls `notify_appended` after it."""
        if last_seen is not None:
            self._engine.lock_session(connection, session_id)
            refuse_newer(connection, session_id, last_seen, [message.row[_EXTERNAL_ID] for message in encoded])
        ids, added = self.insert_all(connection, session_id, encoded)
        self.count(connection, session_id, added)
        count_redactions(connection, sum([message.secrets for message in added]))
        return ids

    def _single_append(self, session_id: StoredName) -> "SingleAppend | None":
        """What appends with one statement, if that is faster with this engine."""
        if not self._dialect.one_statement_appends:
            return None

        return SingleAppend(self._engine, self._in_scope, self._scope.values, session_id)

    def notify_appended(self) -> None:
        """Call `on_append`; for parts of the store that append messages themselves, after their transaction."""
        if self._on_append is not None:
            self._on_append()

    def get_messages(
        self, session_id: str, include_inactive: bool = False, limit: int | None = None, offset: int = 0, after: int = 0
    ) -> list[Message]:
        """The messages in the session's context, in order, with every column; those after one with `after`.

        `include_inactive` adds those that compression removed from the context, but not rewound messages.
        """
        session_id = self._stored_name(session_id)
        which = "(m.active = 1 OR m.compacted = 1)" if include_inactive else "m.active = 1"
        return self._select(
            f"m.session_id = ? AND m.id > ? AND {which} ORDER BY m.id LIMIT ? OFFSET ?",
            (session_id, after, _NO_LIMIT if limit is None else limit, offset),
        )

    def iter_messages(self, session_id: str) -> Iterator[Message]:
        """The messages of a session as `get_messages` returns them with `include_inactive`, read part by part."""
        session_id = self._stored_name(session_id)
        last_id = 0
        while page := self._read_part(session_id, last_id):
            yield from page
            last_id = page[-1]["id"]

    def _read_part(self, session_id: StoredName, after_id: int) -> list[Message]:
        """The next messages of a session: some dozens, or fewer if they are long."""
        page, room = [], _PART_CHARACTERS
        with self._engine.reading() as connection:
            rows = readable_rows(
                connection,
                f"SELECT {CHECKED_COLUMNS} FROM messages m JOIN sessions ON sessions.id = m.session_id {JOIN_ORIGINAL}"
                f" WHERE {self._in_scope} AND m.session_id = ? AND m.id > ? AND (m.active = 1 OR m.compacted = 1)"
                " ORDER BY m.id LIMIT ?",
                (*self._scope.values, session_id, after_id, _PART_MESSAGES),
            )
            for row in rows:
                page.append(decode_checked(row))
                room -= sum([len(value) for value in row if type(value) is str])
                if room <= 0:
                    break
        return page

    def get_messages_as_conversation(
        self,
        session_id: str,
        include_ancestors: bool = False,
        include_inactive: bool = False,
        repair_alternation: bool = False,
    ) -> list[Message]:
        """The session in the form of chat APIs.

        `include_ancestors` begins with the first session that it continues, by compression or because a program gave
        it a parent; what a branch repeats is in it anyway. `include_inactive` adds what was rewound or compressed away.
        `repair_alternation` joins neighbours of one role, for services that refuse them.
        """
        if include_ancestors:
            messages = self._with_ancestors(self._stored_name(session_id), include_inactive)
        else:
            messages = self.get_messages(session_id, include_inactive=include_inactive)
        chat = [as_chat(message) for message in messages]
        return alternate_roles(chat) if repair_alternation else chat

    def _with_ancestors(self, session_id: StoredName, include_inactive: bool) -> list[Message]:
        with self._engine.reading() as connection:
            members = self._ancestors(connection, session_id)
        found: dict[int, Message] = {}
        for member in members:
            for message in self.get_messages(member, include_inactive=True):
                # Each session of a chain copies parts of the one before; those copies are omitted.
                repeated = message["copy_of"] in found or message["is_summary"]
                if not repeated and (include_inactive or message["active"] or message["compacted"]):
                    found[message["id"]] = message
        return list(found.values())

    def _ancestors(self, connection: Connection, session_id: StoredName) -> list[StoredName]:
        """A session and those that it continues, the first one first."""
        members = [session_id]
        while True:
            row = connection.execute(
                f"SELECT parent_session_id FROM sessions WHERE id = ? AND relation != 'branch' AND {self._in_scope}",
                (members[0], *self._scope.values),
            ).fetchone()
            if row is None or row[0] is None or row[0] in members:
                return members
            members.insert(0, row[0])

    def get_message(self, message_id: int) -> Message | None:
        """One message, or None if it was rewound, deleted or is out of scope."""
        found = self._select("m.id = ? AND (m.active = 1 OR m.compacted = 1)", (message_id,))
        return found[0] if found else None

    def get_messages_with(
        self, field: str, start: Position = START, *, first_id: int = 0, last_id: int = _NO_LIMIT
    ) -> list[Message]:
        """The messages that have an extra field, one without a column, in order, without copies.

        `start` limits them to those after a position in the feed, `first_id` and `last_id` to the ids between them.
        """
        condition, values = self._dialect.after("m.id", start)
        return self._select(
            f"{condition} AND m.id >= ? AND m.id <= ? AND {self._dialect.like('m.extra')}"
            " AND (m.active = 1 OR m.compacted = 1) AND m.copy_of IS NULL ORDER BY m.id",
            (*values, first_id, last_id, f'%"{field}"%'),
        )

    def last_message_id(self) -> int:
        """The highest id that any message of the store has; 0 without messages."""
        (number,) = self._fetch_one("SELECT max(id) FROM messages")
        return int(number or 0)

    def get_external_ids(self, session_ids: Sequence[str], external_ids: Sequence[str]) -> dict[str, str]:
        """The external ids that these sessions have, each with its session."""
        session_ids = self._stored_names(session_ids)
        found: dict[str, str] = {}
        given = dict(zip(self._stored_names(external_ids), external_ids, strict=True))
        external_ids = list(given)
        with self._engine.reading() as connection:
            for session_id in session_ids:
                for start in range(0, len(external_ids), _BATCH_SIZE):
                    condition, values = self._dialect.one_of("m.external_id", external_ids[start : start + _BATCH_SIZE])
                    rows = connection.execute(
                        "SELECT m.external_id FROM messages m JOIN sessions ON sessions.id = m.session_id"
                        f" WHERE m.session_id = ? AND {condition} AND {self._in_scope}",
                        (session_id, *values, *self._scope.values),
                    )
                    found |= {given[row[0]]: session_id for row in rows}
        return found

    def live_message_ids(self, session_id: str) -> frozenset[int]:
        """The ids of the messages in the session's context, and of those that they copy word for word."""
        return self.live_ids(session_id).ids

    def live_ids(self, session_id: str, known: LiveIds = NO_LIVE_IDS, rows: list[Any] | None = None) -> LiveIds:
        """Like `live_message_ids`; of what is `known` only later messages are read, unless some were removed.

        `rows` are those of `live_rows`, if the caller has read them.
        """
        if rows is None:
            (rows,) = self._read_at_once(self.live_rows(session_id, known))
        found = [row[2:] for row in rows if row[2] is not None]
        size = known.size + len(found)
        if known.size and (not rows or rows[0][0] != size):
            return self.live_ids(session_id)
        last = max((message_id for message_id, _ in found), default=known.last)
        ids = known.ids.union(chain.from_iterable(found)) - {None}
        return LiveIds(size, last, ids, rows[0][1] if rows else None)

    def live_rows(self, session_id: str, known: LiveIds = NO_LIVE_IDS) -> Statement:
        """The statement for what `live_ids` needs."""
        # If the copy is shortened, the original is not in the context and can still be looked up.
        return (
            "SELECT message_count, conversation_id, m.id,"
            f" CASE WHEN m.copy_of IS NULL OR m.content_format = '{SAME}' THEN m.copy_of WHEN COALESCE(m.content, '') ="
            "   (SELECT COALESCE(original.content, '') FROM messages original WHERE original.id = m.copy_of)"
            " THEN m.copy_of END FROM sessions LEFT JOIN messages m"
            " ON m.session_id = sessions.id AND m.active = 1 AND m.id > ?"
            f" WHERE sessions.id = ? AND {self._in_scope}",
            (known.last, self._stored_name(session_id), *self._scope.values),
        )

    def encode_all(self, messages: Iterable[Mapping[str, Any]]) -> list[EncodedMessage]:
        """Redact messages and turn them into rows."""
        return [encode_redacted(message, count) for message, count in self.redact_all(messages)]

    def redact_all(self, messages: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], int]]:
        """Redact messages as `redact_fields` does; searches several of them together, as nearly all are clean."""
        redacted: list[tuple[Mapping[str, Any], int]] = []
        unread = iter(messages)
        while group := list(islice(unread, _SEARCHED_TOGETHER)):
            for message in group:
                if type(message) is not dict and not isinstance(message, Mapping):
                    raise SessionError(f"A message must be an object with a role, not {type(message).__name__}.")
            if self._is_clean(group):
                redacted += [(message, 0) for message in group]
            else:
                redacted += [self.redact_fields(message) for message in group]
        return redacted

    def redact_fields(self, message: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
        """Redact a message and return how many secrets were removed; the fields that identify it are names."""
        clean, count = self._redact(message)
        if not count:
            return message, 0
        identifying, texts = split_message(message, self._stored_name)
        clean, count = self._redact(texts)
        return {**clean, **identifying}, count

    def insert_all(
        self, connection: Connection, session_id: StoredName, messages: Sequence[EncodedMessage]
    ) -> tuple[list[int], Sequence[EncodedMessage]]:
        """Insert messages, with one statement if all are certainly new; return all ids, and those that are new."""
        if len(messages) > 1 and self._are_new(connection, session_id, [message.row for message in messages]):
            return self._insert_together(connection, session_id, messages), messages
        ids, added = [], []
        for message in messages:
            message_id, is_new = self.insert(connection, session_id, message.row)
            ids.append(message_id)
            if is_new:
                added.append(message)
        return ids, added

    def _are_new(self, connection: Connection, session_id: StoredName, rows: Sequence[Sequence[Any]]) -> bool:
        """Whether certainly no row is a copy, is in the session already, or occurs twice among these."""
        if any([row[_COPY_OF] is not None for row in rows]):
            return False
        names = [row[_EXTERNAL_ID] for row in rows if row[_EXTERNAL_ID] is not None]
        if not names:
            return True
        if self._dialect.one_statement_appends or len(set(names)) < len(names):
            # Where writers do not wait for each other, another one may add the same message now.
            return False
        if not connection.execute("SELECT 1 FROM messages WHERE session_id = ? LIMIT 1", (session_id,)).fetchone():
            return True
        for start in range(0, len(names), _BATCH_SIZE):
            condition, values = self._dialect.one_of("external_id", names[start : start + _BATCH_SIZE])
            stored = connection.execute(
                f"SELECT 1 FROM messages WHERE session_id = ? AND {condition} LIMIT 1", (session_id, *values)
            )
            if stored.fetchone():
                return False
        return True

    def _insert_together(
        self, connection: Connection, session_id: StoredName, messages: Sequence[EncodedMessage]
    ) -> list[int]:
        rows = [message.row for message in messages]
        filled = [index for index, column in enumerate(zip(*rows, strict=True)) if column.count(None) < len(rows)]
        select, names = itemgetter(*filled), ("session_id", CHECKSUM, *[WRITTEN[index] for index in filled])
        values = [(session_id, checksum_of_row(session_id, row), *select(row)) for row in rows]
        try:
            return self._dialect.add_rows(connection, "messages", names, values, _LAST_DELETED)
        except self._dialect.row_refused as error:
            raise unknown_session(session_id) from error

    def insert(
        self, connection: Connection, session_id: StoredName, row: list[Any], *, clear: bool = False
    ) -> tuple[int, bool]:
        """Insert a row; return its id, or that of the message with its external id, and whether it is new.

        With `clear`, the row is certainly new, and loses its content.
        """
        if row[_COPY_OF] is not None:
            row = as_copy(connection, session_id, row)
        filled = tuple(map(_is_filled, row))
        checksum = checksum_of_row(session_id, row)
        if clear:
            content, row[_CONTENT] = [row[_CONTENT]], None
            connection.create_function(_CONTENT_FUNCTION, 0, content.pop)  # type: ignore[attr-defined]
        statement = _insert_statement(self._dialect, filled, clear)
        values = [session_id, checksum, *filter(_is_filled, row)]
        try:
            message_id = self._dialect.add_row(connection, statement, values)
        except self._dialect.row_refused as error:
            raise unknown_session(session_id) from error
        if message_id is not None:
            return message_id, True
        existing, was_edited = connection.execute(
            "SELECT id, rewound IS NOT NULL AND (role, COALESCE(content, '')) <> (?, ?) FROM messages"
            " WHERE session_id = ? AND external_id = ?",
            (row[_ROLE], row[_CONTENT] or "", session_id, row[_EXTERNAL_ID]),
        ).fetchone()
        if not was_edited:
            return int(existing), False
        # The message was rewound and now arrives with other text, because it was edited: the new one gets the id.
        with resealed(connection, [existing]):
            connection.execute("UPDATE messages SET external_id = NULL WHERE id = ?", (existing,))
        return self.insert(connection, session_id, row)

    def _select(self, condition: str, values: Sequence[Any]) -> list[Message]:
        with self._engine.reading() as connection:
            rows = readable_rows(
                connection,
                f"SELECT {CHECKED_COLUMNS} FROM messages m JOIN sessions ON sessions.id = m.session_id {JOIN_ORIGINAL}"
                f" WHERE {self._in_scope} AND {condition}",
                (*self._scope.values, *values),
            )
            return [decode_checked(row) for row in rows]

    def count(self, connection: Connection, session_id: StoredName, added: Sequence[EncodedMessage]) -> None:
        """Add new rows to the session's counters; raises SessionError if the session is out of scope."""
        growth = _growth_of(added)
        session = (session_id, *self._scope.values)
        # Usually the hour stays the same: then the index over hours is not written.
        if (
            not connection.execute(self._count_within_hour, (*growth.counts, growth.hour, *session)).rowcount
            and not connection.execute(
                self._count_always, (*growth.counts, growth.latest, growth.hour, *session)
            ).rowcount
        ):
            raise unknown_session(session_id)
        if any([message.row[_COPY_OF] is not None for message in added]):
            # A copy of a message that does not exist counts as an original.
            recount(connection, session_id)


class _Growth(NamedTuple):
    """What new rows add to a session: its counters with its last activity, the latest of the messages, and its hour."""

    counts: tuple[Any, ...]
    latest: float | None
    hour: int | None


def _growth_of(added: Sequence[EncodedMessage]) -> _Growth:
    """Copies and summaries are rows that no participant said: they count only as rows."""
    said = [message for message in added if message.row[_COPY_OF] is None and message.row[_IS_SUMMARY] is None]
    latest = max([message.row[_TIMESTAMP] for message in said], default=None)
    calls = sum([message.tool_calls for message in said])
    return _Growth((len(added), len(said), calls, latest, latest), latest, None if latest is None else hour_of(latest))


def next_message_id(dialect: Dialect) -> str:
    """An SQL expression for the id of the next message."""
    return dialect.next_id("messages", _LAST_DELETED)


@cache
def _insert_statement(dialect: Dialect, filled: tuple[bool, ...], clear: bool) -> str:
    """The INSERT for a row with only these columns, because binding a null costs as much as binding a value.

    With `clear`, a function returns the content: SQLite would keep a bound text until the statement is used again.
    """
    names = ["session_id", CHECKSUM, *(name for name, is_filled in zip(WRITTEN, filled, strict=True) if is_filled)]
    values = [f"{_CONTENT_FUNCTION}()" if clear and name == "content" else "?" for name in names]
    return (
        f"INSERT INTO messages (id, {', '.join(names)})"
        f" VALUES ({next_message_id(dialect)}, {', '.join(values)})"
        " ON CONFLICT (session_id, external_id) WHERE external_id IS NOT NULL DO NOTHING"
    )


def split_message(message: Mapping[str, Any], name: Callable[[Any], Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that identify a message, as names, and its other fields, with the ids of tool calls as names."""
    identifying = {key: name(message[key]) for key in _IDENTIFYING if key in message}
    texts = {key: value for key, value in message.items() if key not in identifying}
    if isinstance(calls := message.get("tool_calls"), list):
        # The answer to a call finds it by its id.
        texts["tool_calls"] = [
            {**call, "id": name(call["id"])} if isinstance(call, dict) and "id" in call else call for call in calls
        ]
    return identifying, texts


def alternate_roles(messages: Iterable[Message]) -> list[Message]:
    """A copy in which user and assistant alternate: neighbours of one role are joined, results without a call dropped.

    Crashes and imports leave such sequences. Messages with tool calls and their results stay as they are.
    """
    repaired: list[Message] = []
    open_calls: set[Any] = set()
    for message in messages:
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") in open_calls:
                repaired.append(message)
            continue
        last = repaired[-1] if repaired else {}
        open_calls = {call.get("id") for call in message.get("tool_calls") or () if isinstance(call, dict)}
        if role in ("user", "assistant") and role == last.get("role") and not open_calls and not last.get("tool_calls"):
            repaired[-1] = {**last, "content": _join_contents(last.get("content"), message.get("content"))}
        else:
            repaired.append(message)
    return repaired


def _join_contents(first: Any, second: Any) -> Any:
    if isinstance(first, list) or isinstance(second, list):
        return [*_as_parts(first), *_as_parts(second)]
    return "\n\n".join(text for text in (first, second) if text)


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


class SingleAppend:
    """One append to one session."""

    def __init__(self, engine: Engine, in_scope: str, scope_values: Sequence[Any], session_id: str) -> None:
        self._engine = engine
        self._in_scope = in_scope
        self._scope_values = scope_values
        self._session_id = session_id
        self._first = int.from_bytes(os.urandom(8)) >> 2
        self._count = 0

    def execute(self, messages: Sequence[EncodedMessage], *, fail_if_continued: bool) -> list[int]:
        """Append the rows and return their ids; [] if that needs more than one statement, and nothing was stored.

        The reason may be an external id that the session already has, a copy of another message, or an unknown session.
        """
        rows = [message.row for message in messages]
        secrets = sum([message.secrets for message in messages])
        if not 0 < len(rows) <= _MAX_IN_ONE_STATEMENT or any([row[_COPY_OF] is not None for row in rows]):
            return []
        self._count = len(rows)
        filled = tuple([any([row[index] is not None for row in rows]) for index in range(len(WRITTEN))])
        locked = self._engine.locked_session(self._session_id)
        statement = _append_statement(
            filled, locked.text, self._in_scope, len(rows) == 1, fail_if_continued, bool(secrets)
        )
        growth = _growth_of(messages)
        counts = (*growth.counts, growth.latest, growth.hour)
        values = [*counts, *locked.values, *self._scope_values, *self._inserted(rows, filled)]
        if secrets:
            values += [str(secrets), secrets]
        try:
            return sorted([number for (number,) in self._engine.write_statement(statement, values)])
        except self._engine.dialect.row_refused:
            return []

    def find_stored(self, connection: Connection) -> list[int]:
        """The ids of the rows if an attempt to append them was committed; [] otherwise."""
        found = connection.execute(
            "SELECT id FROM messages WHERE session_id = ? AND append_id >= ? AND append_id < ? ORDER BY append_id",
            (self._session_id, self._first, self._first + self._count),
        )
        return [number for (number,) in found]

    def _inserted(self, rows: Sequence[list[Any]], filled: tuple[bool, ...]) -> list[Any]:
        """The values of the new rows: one for each column, or a list for each column."""
        checksums = [checksum_of_row(self._session_id, row) for row in rows]
        columns = [[row[index] for row in rows] for index in range(len(WRITTEN)) if filled[index]]
        columns = [list(range(self._first, self._first + len(rows))), checksums, *columns]
        return [column[0] for column in columns] if len(rows) == 1 else columns


@lru_cache(256)
def _append_statement(
    filled: tuple[bool, ...], locked: str, in_scope: str, is_single: bool, fail_if_continued: bool, has_secrets: bool
) -> str:
    names = ["append_id", CHECKSUM, *(name for name, used in zip(WRITTEN, filled, strict=True) if used)]
    if is_single:
        selected, source = ", ".join("?" * len(names)), ""
    else:
        kinds = ["bigint[]" if name == "append_id" else _ARRAY_TYPES[_COLUMNS[name].kind] for name in names]
        selected = ", ".join(f"added.{name}" for name in names)
        source = f", unnest({', '.join(f'?::{kind}' for kind in kinds)}) AS added ({', '.join(names)})"
    continued = " AND successor_id IS NULL" if fail_if_continued else ""
    redacted = (
        ", redacted AS (INSERT INTO state_meta (key, value) SELECT 'redacted_secrets', ? FROM counted"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(state_meta.value AS BIGINT) + ? AS TEXT))"
    )
    return (
        "WITH counted AS (UPDATE sessions SET message_count = message_count + ?,"
        " own_message_count = own_message_count + ?, tool_call_count = tool_call_count + ?,"
        f" last_active = CASE WHEN {_IF_LATER} THEN COALESCE(?, last_active) ELSE last_active END,"
        f" active_hour = CASE WHEN {_IF_LATER} THEN COALESCE(?, active_hour) ELSE active_hour END"
        f" WHERE id = {locked} AND {in_scope}{continued} RETURNING id, user_id),"
        f" stored AS (INSERT INTO messages (id, session_id, user_id, {', '.join(names)})"
        f" SELECT nextval('messages_id_seq'), counted.id, COALESCE(counted.user_id, ''), {selected}"
        f" FROM counted{source} RETURNING id){redacted if has_secrets else ''} SELECT id FROM stored"
    )
