"""The feeds of messages and items: what is new, and what else has changed, for followers such as the search index.

The store does not know its followers. A follower keeps a `Position` and asks for what comes after it. Every change
other than an append that affects what a search can find adds a row to the `changes` table.

A node with an index file for each of its users asks which sessions have changed and whose they are, and reads the feed
of one user. The feed of items has the form of the feed of messages, so that the same index code follows both: every
item is a session of its own with one message, its current version, and the namespace takes the place of the project, so
that a search can be limited to namespaces.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any, NamedTuple

from memoranda.memory.record.items import searchable_text
from memoranda.memory.record.message_rows import decode_content, decode_json
from memoranda.memory.record.notifications import Notifications
from memoranda.memory.record.schema import FILTERED_COLUMNS
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Condition, Engine, FeedTable, Statement, readable_rows
from memoranda.storage.position import Position
from memoranda.storage.state_meta import read_meta
from memoranda.support.lazy_attribute import lazy_attribute
from memoranda.support.lazy_dataclass import dataclass

_BATCH_SIZE = 500
# The maximum of text in one batch, unless a single message is longer.
MAX_CHARACTERS = 8_000_000
COLUMNS = (
    "m.id, m.session_id, m.role, m.content, m.content_format, m.tool_name, m.tool_calls, m.timestamp, m.is_summary"
)
# The messages that a search can find: not rewound, and neither copies nor summaries.
SEARCHABLE = "(m.active = 1 OR m.compacted = 1) AND m.copy_of IS NULL AND m.is_summary IS NULL"


class FeedMessage(NamedTuple):
    """A message that a follower may index."""

    id: int
    session_id: str
    role: str
    content: Any
    tool_name: str | None
    tool_calls: Any
    timestamp: float
    is_summary: bool = False
    damaged: bool = False
    """It does not match its checksum; only set where a person or a model reads it, not for an index."""


@dataclass(frozen=True, slots=True)
class FeedSession:
    """The columns of a session that a follower needs."""

    id: str
    conversation_id: str
    user_id: str | None
    source: str
    title: str | None
    started_at: float
    archived: int
    project: str | None = None
    model: str | None = None

    @property
    def filtered(self) -> tuple[str | None, ...]:
        """The values of the columns that a search can filter by."""
        return tuple(getattr(self, column) for column in FILTERED_COLUMNS)


_SESSION_COLUMNS = ", ".join(field.name for field in fields(FeedSession))


@dataclass(frozen=True, slots=True)
class FeedChange:
    """What a follower must read again: a session's messages from an id on, or the session itself (None).

    The session may have been deleted.
    """

    position: Position
    session_id: str
    from_message: int | None


class MessageBatch(NamedTuple):
    """The next messages for a follower, and the position to continue from."""

    messages: list[FeedMessage]
    position: Position
    positions: Sequence[Position] = ()
    """The position after each of the messages."""


class Head(NamedTuple):
    """The positions of the last message and the last change."""

    message: Position
    change: Position


class _FeedRows(NamedTuple):
    """The table of a feed, as `m`, and the table of its changes, as `c`: the statements are the same for all feeds.

    `session` is the column that a follower takes for the session. `columns` are those that `decode` turns into a
    message; `long` are the places of long texts among them. `texts` can be searched without an index, `letters` are
    those of them that may have letters outside ASCII. `changed` are the columns of a change after its position.
    """

    table: str
    changes: str
    session: str
    timestamp: str
    columns: str
    searchable: str
    texts: tuple[str, ...]
    letters: tuple[str, ...]
    long: tuple[int, ...]
    changed: str
    decode: Callable[[Sequence[Any]], FeedMessage]

    @property
    def feeds(self) -> tuple[FeedTable, FeedTable]:
        return FeedTable(self.table, "id"), FeedTable(self.changes, "seq")


def feed_message(row: Sequence[Any]) -> FeedMessage:
    """Decode a row of COLUMNS."""
    number, session_id, role, content, content_format, tool_name, tool_calls, timestamp, is_summary = row
    return FeedMessage(
        number, session_id, role, decode_content(content, content_format), tool_name,
        None if tool_calls is None else decode_json(tool_calls), timestamp, bool(is_summary),
    )  # fmt: skip


_MESSAGES = _FeedRows(
    table="messages",
    changes="changes",
    session="session_id",
    timestamp="timestamp",
    columns=COLUMNS,
    searchable=SEARCHABLE,
    texts=("content", "tool_calls", "tool_name"),
    letters=("content",),
    long=(3, 6),
    changed="c.session_id, c.from_message",
    decode=feed_message,
)


class Feed(StorePart):
    """Reads for followers. Most of them cover all users, so a store for one user refuses them; see `UserFeed`."""

    lists_deletions = True
    """Whether the changes include the deletion of a session; if not, a follower compares the sessions that exist."""
    _rows = _MESSAGES

    @property
    def _feeds(self) -> tuple[FeedTable, FeedTable]:
        return self._rows.feeds

    @property
    def notifications(self) -> Notifications:
        """What external memories are to receive besides the messages."""
        return Notifications(self._engine, self._scope, self._redactor)

    def store_id(self) -> str:
        """The random id that this store got when it was created."""
        self._require_everyone()
        with self._engine.reading() as connection:
            return read_meta(connection, "store_id") or ""

    def former_store_ids(self) -> frozenset[str]:
        """The ids of the stores of a fleet in which the user of this scope was before; a file has none."""
        if not self._engine.dialect.one_statement_appends or self._scope.all:
            return frozenset()
        from memoranda.storage.position import former_stores_key  # noqa: PLC0415

        with self._engine.reading() as connection:
            former = read_meta(connection, former_stores_key(self._scope.user)) or ""
        return frozenset(former.split())

    @lazy_attribute
    def any_item(self) -> Statement:
        """Finds a row if there are items in this scope: most records have none, and a search looks for no notes."""
        condition = f"{self._scope.condition('m')} AND {_ITEMS.searchable}"
        return (f"SELECT 1 FROM memory_items m WHERE {condition} LIMIT 1", self._scope.values)

    def has_items(self) -> bool:
        return any(self._read_at_once(self.any_item))

    def head_and_rows(self, part: StorePart, statements: Sequence[Statement]) -> tuple[Head, list[list[Any]]]:
        """The visible head, and the rows of statements for the user of a part of the store, in one round trip."""
        positions, rows = self._dialect.heads_and_rows(part._engine, self._feeds, statements)
        return Head(*positions), rows

    def head(self, *, visible: bool = False) -> Head:
        """The last message and change that a follower can read; with `visible`, see `messages_after`."""
        return Head(*self._engine.wait_for_feed(self._feeds, visible=visible))

    def count_up_to(self, position: Position) -> int:
        """At most how many messages there are up to a position; deleted ones count. For progress and estimates."""
        return position.count

    def session_ids(self) -> set[str]:
        """The ids of all sessions that exist, for a follower that compares them."""
        rows = self._fetch_all(f"SELECT id FROM sessions WHERE {self._in_scope}", self._scope.values)
        return {row[0] for row in rows}

    def mark(self, position: Position) -> str:
        """Describe the last message up to a position, so that a follower recognises the store; "" without messages."""
        condition, values = self._dialect.up_to("id", position)
        return self._describe(f"{condition} ORDER BY {self._dialect.position_order('id', 'DESC')} LIMIT 1", values)

    def mark_of(self, message_id: int) -> str:
        """Describe one message as `mark` does; "" if it no longer exists."""
        return self._describe("id = ?", [message_id])

    def _describe(self, condition: str, values: Sequence[Any]) -> str:
        self._require_everyone()
        within, users = self._messages_in_scope()
        row = self._fetch_one(
            f"SELECT id, {self._rows.timestamp}, {self._rows.session} FROM {self._rows.table} m"
            f" WHERE 1 = 1{within} AND {condition}",
            (*users, *values),
        )
        return " ".join(map(str, row)) if row else ""

    def messages_after(self, position: Position, limit: int, *, visible: bool = False) -> MessageBatch:
        """The next messages after a position, in order: at least one if there is any, fewer if they are long.

        A store for one user returns only the user's own. With `visible`, everything that is committed, for a search
        that does not come back: others may still appear before the position that it reaches.
        """
        join, within, users = self._own("m.session_id")
        if self._dialect.one_statement_appends and not self._scope.all:
            join, (within, users) = "", self._messages_in_scope()
        condition, values = self._after("m.id", position, visible=visible)
        found: list[FeedMessage] = []
        positions: list[Position] = []
        room = MAX_CHARACTERS
        if not visible:
            self._engine.wait_for_feed()
        with self._engine.reading() as connection:
            rows = readable_rows(
                connection,
                f"SELECT {self._dialect.position_columns('m.id')}, {self._rows.columns} FROM {self._rows.table} m{join}"
                f" WHERE {self._rows.searchable} AND {condition}{within}"
                f" ORDER BY {self._dialect.position_order('m.id')} LIMIT ?",
                (*values, *users, limit),
            )
            for transaction, number, *row in rows:
                found.append(self._rows.decode(row))
                position = Position(transaction, number)
                positions.append(position)
                room -= sum([len(row[place] or "") for place in self._rows.long])
                if room <= 0:
                    break
        return MessageBatch(found, position, positions)

    def messages_from(
        self, session_id: str, first_id: int, limit: int = 2**62, *, until: Position | None = None
    ) -> list[FeedMessage]:
        """The messages of a session from an id on, in order; with `until`, those up to that position."""
        session_id = self._stored_name(session_id)
        condition, values = ("1 = 1", ()) if until is None else self._dialect.up_to("m.id", until)
        return self._messages(
            f"m.{self._rows.session} = ? AND m.id >= ? AND {condition} ORDER BY m.id LIMIT ?",
            (session_id, first_id, *values, limit),
        )

    def sample_messages(self, first_id: int, limit: int, *, until: Position) -> list[FeedMessage]:
        """A few messages from an id on, up to a position, for checking an index."""
        condition, values = self._dialect.up_to("m.id", until)
        return self._messages(f"m.id >= ? AND {condition} ORDER BY m.id LIMIT ?", (first_id, *values, limit))

    def messages_by_id(self, ids: Collection[int]) -> dict[int, FeedMessage]:
        """The messages with these ids that can be found."""
        found: dict[int, FeedMessage] = {}
        for batch in _batches(ids):
            for message in self._messages(*self._dialect.one_of("m.id", batch)):
                found[message.id] = message
        return found

    def messages_like(self, patterns: Sequence[str], start: Position, limit: int) -> list[FeedMessage]:
        """The newest messages after a position that match any of the LIKE patterns.

        Some engines stop at a NUL, so every message that contains one is a candidate, too.
        """
        texts = [f"m.{column}" for column in self._rows.texts]
        either = " OR ".join(self._dialect.like(text) for text in texts for _ in patterns)
        condition, values = self._dialect.visible_after("m.id", start)
        return self._messages(
            f"{condition} AND ({either} OR {self._dialect.contains_nul(texts[0])}) ORDER BY m.id DESC LIMIT ?",
            (*values, *list(patterns) * len(texts), limit),
        )

    def messages_beyond_ascii(self, start: Position, limit: int) -> list[FeedMessage]:
        """The newest messages after a position that contain letters outside ASCII."""
        condition, values = self._dialect.visible_after("m.id", start)
        either = " OR ".join(self._dialect.not_ascii(f"m.{column}") for column in self._rows.letters)
        return self._messages(f"{condition} AND ({either}) ORDER BY m.id DESC LIMIT ?", (*values, limit))

    def changes_after(self, position: Position, limit: int, *, visible: bool = False) -> list[FeedChange]:
        """The next changes after a position, in order; for one user, those of sessions that exist."""
        join, within, users = self._own("c.session_id")
        condition, values = self._after("c.seq", position, visible=visible)
        if not visible:
            self._engine.wait_for_feed()
        rows = self._fetch_all(
            f"SELECT {self._dialect.position_columns('c.seq')}, {self._rows.changed}"
            f" FROM {self._rows.changes} c{join} WHERE {condition}{within}"
            f" ORDER BY {self._dialect.position_order('c.seq')} LIMIT ?",
            (*values, *users, limit),
        )
        return [FeedChange(Position(transaction, number), *row) for transaction, number, *row in rows]

    def feed_sessions(self, ids: Collection[str]) -> dict[str, FeedSession]:
        """The sessions with these ids that exist."""
        self._require_everyone()
        found: dict[str, FeedSession] = {}
        for batch in _batches(ids):
            found |= {session.id: session for session in self._sessions(batch)}
        return found

    def _sessions(self, ids: list[str]) -> list[FeedSession]:
        condition, values = self._dialect.one_of("id", ids)
        rows = self._fetch_all(
            f"SELECT {_SESSION_COLUMNS} FROM sessions WHERE {condition} AND {self._in_scope}",
            (*values, *self._scope.values),
        )
        return [FeedSession(*row) for row in rows]

    def _after(self, column: str, position: Position, *, visible: bool) -> Condition:
        return (self._dialect.visible_after if visible else self._dialect.after)(column, position)

    def _own(self, column: str) -> tuple[str, str, tuple[str, ...]]:
        """The join with sessions, the condition and its values that limit a feed to the user of this store."""
        if self._scope.all:
            return "", "", ()
        return f" JOIN sessions ON sessions.id = {column}", f" AND {self._in_scope}", self._scope.values

    def _messages_in_scope(self) -> tuple[str, tuple[str, ...]]:
        """A condition on the messages of one user of a server, by an index in the order of the feed."""
        return ("", ()) if self._scope.all else (" AND m.user_id = ?", (self._scope.user or "",))

    def _messages(self, condition: str, values: Sequence[Any]) -> list[FeedMessage]:
        if not self._scope.all:
            self._require_everyone()
        within, users = self._messages_in_scope()
        rows = self._rows
        statement = f"SELECT {rows.columns} FROM {rows.table} m WHERE {rows.searchable}{within} AND {condition}"
        (found,) = self._read_at_once((statement, (*users, *values)))
        return [rows.decode(row) for row in found]


def note_change(connection: Connection, session_id: str, from_message: int | None = None) -> None:
    """Add a row to the feed, in the transaction that makes the change."""
    connection.execute("INSERT INTO changes (session_id, from_message) VALUES (?, ?)", (session_id, from_message))


def _batches(ids: Collection[Any]) -> Iterator[list[Any]]:
    rest = iter(ids)
    while batch := list(islice(rest, _BATCH_SIZE)):
        yield batch


_CHANGE_FEEDS = (FeedTable("changes", "seq"), FeedTable("item_changes", "seq"))


class ChangeHeads(NamedTuple):
    """The positions of the last change of a session and the last change of an item."""

    session: Position
    item: Position


class ChangedSession(NamedTuple):
    """A row of the feed of changes, with the user who has the session now."""

    position: Position
    session_id: str
    user: str | None
    exists: bool
    was_deleted: bool
    """It was deleted, so another user may have had it; its id may have been used again since."""


class ChangedSessions(Feed):
    """The changes of all users, with their users, for a store that sees everyone."""

    def heads(self) -> ChangeHeads:
        """How far the changes can be read now: one statement, however many users there are."""
        self._require_everyone()
        return ChangeHeads(*self._engine.wait_for_feed(_CHANGE_FEEDS))

    def changed_after(self, position: Position, limit: int) -> list[ChangedSession]:
        """The next changes after a position, in order."""
        self._require_everyone()
        condition, values = self._dialect.after("c.seq", position)
        rows = self._fetch_all(
            f"SELECT {self._dialect.position_columns('c.seq')}, c.session_id, s.user_id, s.id IS NOT NULL,"
            " s.id IS NULL OR d.id IS NOT NULL FROM changes c"
            " LEFT JOIN sessions s ON s.id = c.session_id LEFT JOIN deleted_sessions d ON d.id = c.session_id"
            f" WHERE {condition} ORDER BY {self._dialect.position_order('c.seq')} LIMIT ?",
            (*values, limit),
        )
        return [
            ChangedSession(Position(transaction, number), session_id, user, bool(exists), bool(was_deleted))
            for transaction, number, session_id, user, exists, was_deleted in rows
        ]


class UserFeed(Feed):
    """Has the messages of one user, by an index of the server, so that it costs as much as that user has recorded.

    Its changes have no deleted sessions, because nothing says whose they were. The position of the last change is that
    of all users: when it moves, a follower compares the sessions.
    """

    lists_deletions = False

    def __init__(self, engine: Engine, user: str | None) -> None:
        super().__init__(engine, Scope.of(user), None)
        self._owner = user_name(user)

    def store_id(self) -> str:
        """The id of the store and the user: an index of another user is never taken for this one."""
        return f"{super().store_id()} {self._owner}"

    @property
    def _feeds(self) -> tuple[FeedTable, FeedTable]:
        messages, changes = super()._feeds
        return messages._replace(condition=Condition("user_id = ?", (self._scope.user or "",))), changes

    def count_up_to(self, position: Position) -> int:
        condition, values = self._dialect.up_to("id", position)
        row = self._fetch_one(
            f"SELECT count(*) FROM messages WHERE user_id = ? AND {condition}", (self._scope.user or "", *values)
        )
        return int(row[0])

    def _require_everyone(self) -> None:
        """Nothing to refuse: every read is limited to the user."""


def user_name(user: str | None) -> str:
    """The name of a user in files: no path can be made of it, and it does not tell who it is."""
    return hashlib.sha256(f"u:{user or ''}".encode("utf-8", "surrogatepass")).hexdigest()[:40]


SOURCE = "item"


def _item_as_message(row: Sequence[Any]) -> FeedMessage:
    number, item_id, key, value, indexed, updated_at = row
    text = searchable_text(key, decode_json(value or "null"), indexed)
    return FeedMessage(number, item_id, "user", text, None, None, updated_at)


_ITEMS = _FeedRows(
    table="memory_items",
    changes="item_changes",
    session="item_id",
    timestamp="updated_at",
    columns="m.id, m.item_id, m.key, m.value, m.indexed, m.updated_at",
    searchable="m.current = 1",
    texts=("key", "value"),
    letters=("key", "value"),
    long=(3,),
    changed="c.item_id, 0",
    decode=_item_as_message,
)


class ItemFeed(Feed):
    """Reads for the index of items; they cover all users, so a store for one user refuses them."""

    _rows = _ITEMS

    def _sessions(self, ids: list[str]) -> list[FeedSession]:
        condition, values = self._dialect.one_of("m.item_id", ids)
        rows = self._fetch_all(
            "SELECT m.item_id, m.user_id, m.created_at, m.namespace FROM memory_items m"
            f" WHERE {_ITEMS.searchable} AND {condition}",
            values,
        )
        return [
            FeedSession(item_id, item_id, user_id, SOURCE, None, created_at, 0, namespace)
            for item_id, user_id, created_at, namespace in rows
        ]

    def _own(self, column: str) -> tuple[str, str, tuple[str, ...]]:
        self._require_everyone()
        return "", "", ()
