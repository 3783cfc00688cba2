"""Brings the vectors up to date with the record, in one short transaction at a time."""

import sqlite3
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from memoranda.memory.record.feed import Feed, FeedMessage, FeedSession
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, USER
from memoranda.search.meaning import vector_file
from memoranda.search.meaning.embedder import Embedder, EmbedderError
from memoranda.search.meaning.session_texts import MAX_CHARS
from memoranda.search.meaning.vector_file import Row, VectorState
from memoranda.storage.position import Position

_CHANGES = 200
_MAX_SECONDS = 60.0


class VectorUpdater:
    """One transaction of a file; the caller begins and commits it. If embedding fails, nothing is written."""

    def __init__(self, connection: sqlite3.Connection, feed: Feed, embedder: Embedder, np: Any) -> None:
        self._connection = connection
        self._feed = feed
        self._embedder = embedder
        self._np = np

    def follow(self, state: VectorState, limit: int) -> tuple[VectorState, bool]:
        """Apply changes, then embed the next messages; returns the new state and whether there is more to do."""
        state, more = self.follow_changes(state)
        if more:
            return state, True
        # Before the messages: those that are appended in between must not be skipped.
        head = self._feed.head().message
        messages, position, _ = self._feed.messages_after(state.message, limit)
        self._add(messages, state.dimensions)
        if messages:
            state = state._replace(message=position, mark=self._feed.mark_of(messages[-1].id))
        else:
            # The rest of the record has nothing that a search can find.
            state = state._replace(message=max(state.message, head))
        state = state._replace(dimensions=self._embedder.dimensions)
        vector_file.write_state(self._connection, state)
        return state, bool(messages)

    def follow_changes(self, state: VectorState) -> tuple[VectorState, bool]:
        """Remove what was deleted, and embed what was changed; returns whether there may be more."""
        head = self._feed.head().message
        changes = self._feed.changes_after(state.change, _CHANGES)
        first: dict[str, int | None] = {}
        for change in changes:
            known = first.get(change.session_id)
            candidates = [number for number in (known, change.from_message) if number is not None]
            first[change.session_id] = min(candidates) if candidates else None
        existing = self._feed.feed_sessions(list(first))
        for session_id, from_message in first.items():
            self._recheck(session_id, existing.get(session_id), from_message, state)
        if changes:
            # If the marked message was deleted and stayed the mark, everything would be embedded again.
            message = min(state.message, head)
            state = state._replace(change=changes[-1].position, message=message, mark=self._feed.mark(message))
            vector_file.write_state(self._connection, state)
        return state, len(changes) == _CHANGES

    def _recheck(self, session_id: str, session: FeedSession | None, first: int | None, state: VectorState) -> None:
        """Compare a session with the record: all of it if it was deleted, its messages from `first` on otherwise."""
        row = self._connection.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            return
        number = int(row[0])
        if session is None:
            self._erase(number, {}, 0, state.dimensions)
            self._connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
            return
        self._write_session(session)
        if first is not None:
            current = self._messages(session_id, first, state.message)
            kept = self._erase(
                number, {message.id: _checksum(text) for message, text in current}, first, state.dimensions
            )
            changed = [(message, text) for message, text in current if message.id not in kept]
            self._embed(changed, state.dimensions)

    def _messages(self, session_id: str, first: int, until: Position) -> list[tuple[FeedMessage, str]]:
        return _texts(self._feed.messages_from(session_id, first, until=until))

    def _erase(self, session: int, current: dict[int, int], first: int, dimensions: int) -> set[int]:
        """Erase a session's messages from an id on, except those with these checksums; returns what is left."""
        kept: set[int] = set()
        for block in vector_file.read_blocks(self._connection, self._np, dimensions, {}).values():
            rows = self._np.nonzero((block.sessions == session) & (block.messages >= max(first, 1)))[0].tolist()
            same = [row for row in rows if current.get(int(block.messages[row])) == int(block.checksums[row])]
            kept.update(int(block.messages[row]) for row in same)
            if gone := [row for row in rows if row not in same]:
                vector_file.erase_rows(self._connection, self._np, block, gone, dimensions)
        return kept

    def _add(self, messages: Sequence[FeedMessage], dimensions: int) -> None:
        texts = _texts(messages)
        for session in self._feed.feed_sessions({message.session_id for message, _ in texts}).values():
            self._write_session(session)
        self._embed(texts, dimensions)

    def _embed(self, texts: Sequence[tuple[FeedMessage, str]], dimensions: int) -> None:
        """Embed messages; `dimensions` is the length of the vectors in the file, 0 if it has none."""
        if not texts:
            return
        vectors = self._embedder.embed([text for _, text in texts], timeout=_MAX_SECONDS, background=True)
        if dimensions not in (0, vectors.shape[1]):
            raise EmbedderError(f"{self._embedder.name} changed the length of its vectors; they are all made again.")
        numbers = {session_id: self._number(session_id) for session_id in {message.session_id for message, _ in texts}}
        rows, kept = [], []
        for place, (message, text) in enumerate(texts):
            session = numbers[message.session_id]
            if session is not None:
                role = USER if message.role == "user" else ASSISTANT
                rows.append(Row(message.id, session, message.timestamp, role, _checksum(text)))
                kept.append(place)
        if rows:
            vector_file.append_rows(self._connection, self._np, rows, vectors[kept])

    def _number(self, session_id: str) -> int | None:
        """The file's number of a session; None if it was deleted meanwhile, which a later change tells."""
        row = self._connection.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return None if row is None else int(row[0])

    def _write_session(self, session: FeedSession) -> None:
        self._connection.execute(
            "INSERT INTO sessions (id, conversation, user, source, project) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO"
            " UPDATE SET conversation = excluded.conversation, user = excluded.user, source = excluded.source,"
            " project = excluded.project",
            (session.id, session.conversation_id, session.user_id, session.source, session.project),
        )


def _texts(messages: Sequence[FeedMessage]) -> list[tuple[FeedMessage, str]]:
    """What people and assistants wrote; results of tools have no vector."""
    found = []
    for message in messages:
        words = searchable_text(message)
        if words.kind in (USER, ASSISTANT) and words.text.strip():
            found.append((message, words.text[:MAX_CHARS]))
    return found


def _checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
