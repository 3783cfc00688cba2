"""Brings an index up to date with the record, within transactions of the caller.

Changes are read before messages. So a change in between is either visible in the messages, or has a later position and
is read next time. Messages up to the position are rechecked only because of a change.
"""

import sqlite3
from binascii import crc32
from collections.abc import Callable, Collection, Iterable, Iterator

from memoranda.memory.record.feed import Feed, FeedChange, FeedMessage, FeedSession, Head
from memoranda.memory.record.schema import FILTERED_COLUMNS
from memoranda.search.index.index_file import read_state, write_state
from memoranda.search.index.message_text import (
    CONVERSATION_KINDS,
    KINDS,
    SPOKEN,
    SearchableText,
    filter_token,
    searchable_text,
    title_text,
)  # fmt: skip
from memoranda.search.index.postings import TITLE, USER
from memoranda.search.index.segments import SegmentWriter
from memoranda.search.index.sequences import encode_sequence
from memoranda.search.index.standing_instructions import MARKED, marker_tokens
from memoranda.search.index.tokenizer import index_tokens

MAX_CHANGES = 500
_FILTERED = ", ".join(FILTERED_COLUMNS)
_COLUMNS = f"conversation, user, title, started, {_FILTERED}"
_MARKS = ", ".join("?" for _ in _COLUMNS.split(","))
_KIND_TOKENS = {kind: filter_token("kind", kind) for kind in KINDS}
_BATCH_SIZE = 500


class IndexUpdater:
    """Applies changes and new messages to an index in one transaction; `close` writes them."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        feed: Feed,
        number_for: Callable[[str], int | None] = lambda session_id: None,
        ordinal_for: Callable[[FeedMessage], int | None] = lambda message: None,
    ) -> None:
        """`number_for` and `ordinal_for` may choose the number of a session and the ordinal of a message."""
        self._connection = connection
        self._feed = feed
        self.state = read_state(connection)
        self._segment = SegmentWriter(connection)
        self._docs: list[tuple[int, int, int, int, int, int, float, int]] = []
        self._open_sessions: dict[str, _SessionRow] = {}
        self._number_for = number_for
        self._ordinal_for = ordinal_for

    def follow(self, limit: int) -> bool:
        """Index the next changes and messages that can be read now; returns whether there may be more."""
        followed = self.state.change
        head, changes = self._read_changes()
        more = self._follow_changes(head, changes)
        if self.state.change > followed:
            # Where the newest messages were deleted, other programs may give their ids to new ones.
            self.state.message = min(self.state.message, head.message)
        # One view, for few round trips to a server; within it nothing waits for transactions that are in progress.
        with self._feed.one_view():
            batch = self._feed.messages_after(self.state.message, limit)
            sessions = self._read_sessions(message.session_id for message in batch.messages)
            # An empty list may lack messages that were appended after the head was read.
            reached = batch.position if batch.messages else head.message
            position = max(reached, self.state.message)
            self.state.mark = self._feed.mark(position)
        self._add_all(batch.messages, sessions)
        self.state.message = position
        return more or reached < head.message

    def follow_changes(self) -> bool:
        """Apply the next changes; returns whether there may be more."""
        more = self._follow_changes(*self._read_changes())
        self.state.mark = self._feed.mark(self.state.message)
        return more

    def _read_changes(self) -> tuple[Head, list[FeedChange]]:
        with self._feed.one_view():
            return self._feed.head(), self._feed.changes_after(self.state.change, MAX_CHANGES)

    def _follow_changes(self, head: Head, changes: list[FeedChange]) -> bool:
        followed = self.state.change
        if changes:
            self._apply(changes)
        if len(changes) == MAX_CHANGES:
            return True
        if not self._feed.lists_deletions and head.change > followed:
            self._remove_missing()
            self.state.change = max(head.change, self.state.change)
        return False

    def _remove_missing(self) -> None:
        """Remove the sessions that the record no longer has, for a feed that does not list deletions."""
        existing = self._feed.session_ids()
        for (session_id,) in self._connection.execute("SELECT id FROM sessions").fetchall():
            if session_id not in existing:
                self._remove(session_id)

    def _apply(self, changes: list[FeedChange]) -> None:
        """Recheck all sessions that the changes name."""
        sessions = self._feed.feed_sessions({change.session_id for change in changes})
        recheck_from: dict[str, int] = {}
        for change in changes:
            if change.from_message is not None:
                recheck_from[change.session_id] = min(
                    change.from_message, recheck_from.get(change.session_id, change.from_message)
                )
        for session_id in dict.fromkeys(change.session_id for change in changes):
            session = sessions.get(session_id)
            if session is None:
                self._remove(session_id)
            else:
                self._refresh(session)
                first = 0 if self._may_be_recreated(session_id) else recheck_from.get(session_id)
                if first is not None:
                    self._recheck(session_id, first)
        self.state.change = changes[-1].position

    def add(self, messages: Collection[FeedMessage], sessions: Collection[str] = ()) -> None:
        """Index messages that are not indexed yet, and the titles of their sessions and of the other `sessions`."""
        closed = self._read_sessions([*sessions, *(message.session_id for message in messages)])
        for name in sessions:
            if name in closed:
                self._ensure_open(closed.pop(name))
        self._add_all(messages, closed)

    def _read_sessions(self, names: Iterable[str]) -> dict[str, FeedSession]:
        """Those of the sessions whose rows are not open yet, from the record."""
        return self._feed.feed_sessions([name for name in dict.fromkeys(names) if name not in self._open_sessions])

    def _add_all(self, messages: Iterable[FeedMessage], closed: dict[str, FeedSession]) -> None:
        """Index messages; `closed` has their sessions whose rows are not open yet."""
        for message in messages:
            if message.session_id in closed:
                # Its title is indexed now, so that the documents of a session follow each other.
                self._ensure_open(closed.pop(message.session_id))
            session = self._open_sessions.get(message.session_id)
            # The messages of a deleted session must not be found.
            if session is not None:
                self._add(message, searchable_text(message), session, self._ordinal_for(message))

    def close(self) -> None:
        """Write the collected rows; the caller commits."""
        self._write_docs()
        self._segment.write()
        write_state(self._connection, self.state)

    def _write_docs(self) -> None:
        """Write the collected rows, so that the tables can be queried."""
        self._connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._docs)
        touched = [session for session in self._open_sessions.values() if session.touched]
        self._connection.executemany(
            "UPDATE sessions SET places = ? WHERE number = ?", ((session.places, session.number) for session in touched)
        )
        for session in touched:
            session.touched = False
        self._docs = []

    def _add(
        self, message: FeedMessage, words: SearchableText, session: "_SessionRow", ordinal: int | None = None
    ) -> None:
        """Index one message with its previous ordinal, or after the others."""
        new = session.places if ordinal is None else ordinal
        if self._index(words, message.id, session, new, message.timestamp):
            session.places = max(session.places, new + 1)
            session.touched = True

    def _index(self, words: SearchableText, message: int, session: "_SessionRow", ordinal: int, time: float) -> bool:
        """Index a text; returns whether it has any tokens."""
        length = 0
        tokens: set[str] = set()
        in_order: list[list[str]] = []
        for text in filter(None, (words.text, words.tool_text)):
            spaced, unspaced, parts = (tokens.split() for tokens in index_tokens(text))
            length += len(spaced) + len(unspaced)
            tokens.update(spaced, unspaced, parts)
            in_order += filter(None, (spaced, parts))
        if not tokens:
            return False
        if words.kind == USER and not marker_tokens().isdisjoint(tokens):
            tokens.add(MARKED)
        tokens.update(session.filter_tokens)
        tokens.add(_KIND_TOKENS[words.kind])
        if words.kind in CONVERSATION_KINDS:
            tokens.add(SPOKEN)
        state = self.state
        self._segment.add(state.next_doc, tokens, encode_sequence(in_order), time)
        self._docs.append(
            (state.next_doc, message, session.number, ordinal, words.kind, length, time, _checksum(words))
        )
        state.next_doc += 1
        state.messages += message > 0
        state.tokens += length
        return True

    def _ensure_open(self, session: FeedSession) -> bool:
        """Open the row of a session, or insert it; returns whether it existed."""
        if session.id not in self._open_sessions and not self._open(session.id):
            self._insert(session)
            return False
        if self._open_sessions[session.id].identity != (session.started_at, session.user_id):
            # Deleted and created again under the same id: the indexed messages may belong to either.
            self._remove(session.id)
            self._insert(session)
            self._recheck(session.id, 0)
            return False
        return True

    def _open(self, session_id: str) -> bool:
        row = self._connection.execute(
            f"SELECT number, places, started, user, {_FILTERED} FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        if row is not None:
            number, places, started, user, *filtered = row
            self._open_sessions[session_id] = _SessionRow(number, started, user, tuple(filtered), places)
        return row is not None

    def _insert(self, session: FeedSession) -> None:
        cursor = self._connection.execute(
            f"INSERT INTO sessions (number, id, {_COLUMNS}) VALUES (?, ?, {_MARKS})",
            (self._number_for(session.id), session.id, *_session_values(session)),
        )
        assert cursor.lastrowid is not None
        self.state.sessions += 1
        self._open_sessions[session.id] = _SessionRow(
            cursor.lastrowid, session.started_at, session.user_id, session.filtered
        )
        self._add_title(session)

    def _add_title(self, session: FeedSession) -> None:
        if session.title:
            self._index(title_text(session.title), 0, self._open_sessions[session.id], -1, session.started_at)

    def _refresh(self, session: FeedSession) -> None:
        """Update the row of a session from the record."""
        if not self._ensure_open(session):
            return
        opened = self._open_sessions[session.id]
        (title,) = self._connection.execute("SELECT title FROM sessions WHERE number = ?", (opened.number,)).fetchone()
        self._connection.execute(
            f"UPDATE sessions SET ({_COLUMNS}) = ({_MARKS}) WHERE number = ?",
            (*_session_values(session), opened.number),
        )
        if opened.filters != (session.user_id, session.filtered):
            # Its documents are found by the old values, so all of them are indexed again.
            self._write_docs()
            ordinals = {message: ordinal for _, message, _, ordinal in self._docs_of(opened, 0)}
            self._delete(doc for doc, _ in self._every_doc(opened))
            opened.set_filters(session.user_id, session.filtered)
            self._add_title(session)
            for message in self._messages(session.id, 0):
                self._add(message, searchable_text(message), opened, ordinals.get(message.id))
        elif title != session.title:
            self._write_docs()
            self._delete([doc for doc, role in self._every_doc(opened) if role == TITLE])
            self._add_title(session)

    def _may_be_recreated(self, session_id: str) -> bool:
        """Whether a session may have been deleted and created again: then none of its old messages exists."""
        self._write_docs()
        row = self._connection.execute(
            "SELECT message FROM docs WHERE session = ? AND role <> ? LIMIT 1",
            (self._open_sessions[session_id].number, TITLE),
        ).fetchone()
        return row is not None and not self._feed.messages_by_id([row[0]])

    def _remove(self, session_id: str) -> None:
        """Remove a deleted session."""
        self._write_docs()
        if not self._open(session_id):
            return
        session = self._open_sessions.pop(session_id)
        self._delete([doc for doc, _ in self._every_doc(session)])
        self._connection.execute("DELETE FROM sessions WHERE number = ?", (session.number,))
        self.state.sessions -= 1

    def _recheck(self, session_id: str, first: int) -> None:
        """Compare a session's messages from `first` on with the record: drop deleted, index new and changed ones."""
        self._write_docs()
        session = self._open_sessions.get(session_id)
        if session is None:
            return
        known = {message: (doc, mark, ordinal) for doc, message, mark, ordinal in self._docs_of(session, first)}
        for message in self._messages(session_id, first):
            words = searchable_text(message)
            doc, mark, ordinal = known.get(message.id, (None, None, None))
            if doc is not None and mark == _checksum(words):
                del known[message.id]
            else:
                self._add(message, words, session, ordinal)
        self._delete([row[0] for row in known.values()])

    def _messages(self, session_id: str, first: int) -> Iterator[FeedMessage]:
        """A session's messages from `first` on, up to the position of the index."""
        while messages := self._feed.messages_from(session_id, first, _BATCH_SIZE, until=self.state.message):
            yield from messages
            first = messages[-1].id + 1

    def _docs_of(self, session: "_SessionRow", first: int) -> list[tuple[int, int, int, int]]:
        rows = self._connection.execute(
            "SELECT doc, message, mark, place FROM docs WHERE session = ? AND message >= ? AND role <> ? ORDER BY doc",
            (session.number, first, TITLE),
        )
        return rows.fetchall()

    def _every_doc(self, session: "_SessionRow") -> list[tuple[int, int]]:
        """The documents of a session and their roles, the title included."""
        return self._connection.execute("SELECT doc, role FROM docs WHERE session = ?", (session.number,)).fetchall()

    def _delete(self, docs: Iterable[int]) -> None:
        for doc in docs:
            row = self._connection.execute(
                "DELETE FROM docs WHERE doc = ? RETURNING message > 0, length", (doc,)
            ).fetchone()
            if row is not None:
                counted, length = row
                self.state.messages -= counted
                self.state.tokens -= length
                self._connection.execute("INSERT INTO dead VALUES (?)", (doc,))


class _SessionRow:
    """The row of a session during a transaction."""

    __slots__ = ("filter_tokens", "filters", "identity", "number", "places", "touched")

    def __init__(
        self, number: int, started: float, user: str | None, filtered: tuple[str | None, ...], places: int = 0
    ) -> None:
        self.number = number
        self.identity = (started, user)
        self.places = places
        self.touched = False
        self.set_filters(user, filtered)

    def set_filters(self, user: str | None, filtered: tuple[str | None, ...]) -> None:
        self.filters = (user, filtered)
        self.filter_tokens = (filter_token("user", user), *map(filter_token, FILTERED_COLUMNS, filtered))


def _session_values(session: FeedSession) -> tuple[object, ...]:
    """The values of `_COLUMNS`."""
    return (session.conversation_id, session.user_id, session.title, session.started_at, *session.filtered)


def _checksum(words: SearchableText) -> int:
    """A number of three bytes that changes with the text."""
    text = f"{words.kind}\0{words.text}\0{words.tool_text}"
    return crc32(text.encode("utf-8", "surrogatepass")) & 0x7FFFFF
