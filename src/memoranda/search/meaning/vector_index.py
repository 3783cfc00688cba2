"""The index of vectors beside a store: a cache that follows the record and finds messages by what they mean.

It may lag behind the record, be missing or be deleted at any time; searches then compare less. Its file is written in
short transactions, so a process that is killed resumes after the last batch, and only one process writes at a time.
"""

import logging
import sqlite3
import threading
from binascii import crc32
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.memory.record.feed import Feed, FeedMessage, FeedSession
from memoranda.memory.record.schema import FILTERED_COLUMNS
from memoranda.search.index.follower import FollowingIndex
from memoranda.search.index.generations import describe_error, is_damage
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, USER
from memoranda.search.meaning import vector_file
from memoranda.search.meaning.embedder import Embedder, EmbedderError
from memoranda.search.meaning.session_texts import MAX_CHARS
from memoranda.search.meaning.vector_file import Row, VectorReader, VectorState
from memoranda.storage.position import START, Position
from memoranda.support.home import COMPANIONS, remove_file
from memoranda.support.lazy_dataclass import dataclass

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
                vector_file.erase_rows(self._connection, block, gone, dimensions)
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
        columns = ("conversation", "user", *FILTERED_COLUMNS)
        self._connection.execute(
            f"INSERT INTO sessions (id, {', '.join(columns)}) VALUES (?{', ?' * len(columns)}) ON CONFLICT (id) DO"
            f" UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in columns)}",
            (session.id, session.conversation_id, session.user_id, *session.filtered),
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


_log = logging.getLogger(__name__)

# An embedder that is fast embeds more messages in one transaction.
_BATCH, _SLOW_BATCH = 2_000, 64
# Another process may be embedding a batch; if it takes longer, the caller deletes all vectors.
_WAIT_TO_FORGET = 20.0


@dataclass(frozen=True, slots=True)
class VectorProgress:
    """How far the vectors have followed the record, and why they cannot continue (None: they can)."""

    indexed: Position
    head: Position
    problem: str | None = None

    @property
    def complete(self) -> bool:
        return self.indexed >= self.head


class VectorCounts(NamedTuple):
    """What the file contains."""

    messages: int
    sessions: int
    bytes: int


class VectorIndex(FollowingIndex):
    """The vectors of one embedder. Several threads and processes may use it at once.

    Damage is noticed when the file is read, and vectors of deleted messages are removed with the next update.
    """

    def __init__(self, path: Path, feed: Feed, load: Callable[[], Embedder]) -> None:
        """`load` returns the embedder, or raises EmbedderError."""
        self.path = path
        self._feed = feed
        self._load = load
        self._writing = threading.Lock()
        self._reading = threading.RLock()
        self._reader: VectorReader | None = None

    def catch_up(
        self, *, limit: int | None = None, progress: Callable[[int, int], None] | None = None
    ) -> VectorProgress:
        """Embed new messages in short transactions, about `limit` of them; raises EmbedderError and StorageError."""
        done = 0
        while True:
            state, more = self._step(limit)
            head = self._feed.head().message
            if progress is not None:
                progress(state.message.count, max(state.message, head).count)
            done += _BATCH
            if not more or (limit is not None and done >= limit):
                return VectorProgress(state.message, max(state.message, head))

    def forget_deleted(self) -> None:
        """Remove the vectors of messages that were deleted from the record; does nothing without a file."""
        if self.path.exists():
            more = True
            while more:
                with self._transaction(_WAIT_TO_FORGET) as (connection, state):
                    updater = VectorUpdater(connection, self._feed, self._load(), _numpy())
                    _, more = updater.follow_changes(state)

    @contextmanager
    def reading(self) -> Iterator[VectorReader | None]:
        """The vectors as they are now; None if there are none that the embedder can be compared with."""
        with self._reading:
            try:
                yield self._open_reader()
            except (sqlite3.DatabaseError, OSError) as error:
                self._discard_damaged(error)
                raise EmbedderError(f"the index of vectors cannot be read: {describe_error(error)}.") from error

    def progress(self) -> VectorProgress:
        """How far the file has followed; does not embed anything."""
        head = self._feed.head().message
        with self.reading() as reader:
            return VectorProgress(START if reader is None else reader.state.message, head)

    def counts(self) -> VectorCounts:
        files = (Path(f"{self.path}{companion}") for companion in COMPANIONS)
        size = sum(file.stat().st_size for file in files if file.exists())
        with self.reading() as reader:
            return VectorCounts(*((0, 0) if reader is None else reader.counts()), size)

    def close(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def remove(self) -> None:
        """Delete the file; it is rebuilt if the settings still ask for it."""
        with self._writing:
            self.close()
            remove_file(self.path)

    def _open_reader(self) -> VectorReader | None:
        if self._reader is not None and not self._reader.is_current():
            self.close()
        if self._reader is None and self.path.exists():
            self._reader = VectorReader(self.path, _numpy())
        reader = self._reader
        embedder = self._load()
        if reader is None or not reader.refresh(embedder.name, self._feed.store_id()):
            return None
        return reader if _has_length(embedder, reader.state) else None

    def _step(self, limit: int | None) -> tuple[VectorState, bool]:
        embedder = self._load()
        size = _BATCH if embedder.is_fast else _SLOW_BATCH
        with self._transaction() as (connection, state):
            updater = VectorUpdater(connection, self._feed, embedder, _numpy())
            return updater.follow(state, size if limit is None else min(size, limit))

    @contextmanager
    def _transaction(self, wait: float = 1.0) -> Iterator[tuple[sqlite3.Connection, VectorState]]:
        """One transaction, in which no other process writes; a file of another store or model is emptied first.

        `wait` is how many seconds it waits for another process.
        """
        with self._writing:
            try:
                connection = vector_file.connect(self.path, wait)
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    before = connection.execute("SELECT * FROM state").fetchone()
                    yield connection, self._valid_state(connection)
                    connection.execute("COMMIT")
                    if before != connection.execute("SELECT * FROM state").fetchone():
                        # What was erased must not stay in the log.
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                finally:
                    connection.close()
            except (sqlite3.DatabaseError, OSError) as error:
                self._discard_damaged(error)
                raise StorageError(f"The index of vectors cannot be written: {describe_error(error)}.") from error

    def _valid_state(self, connection: sqlite3.Connection) -> VectorState:
        embedder, store = self._load(), self._feed.store_id()
        state = vector_file.read_state(connection)
        if (
            state is None
            or (state.store, state.model) != (store, embedder.name)
            or not _has_length(embedder, state)
            or self._is_foreign(state)
        ):
            state = VectorState(store, embedder.name, embedder.dimensions)
            vector_file.empty(connection, state)
        return state

    def _is_foreign(self, state: VectorState) -> bool:
        """Whether the store was restored from an older copy, which assigns the same ids to other messages."""
        head = self._feed.head()
        current = self._feed.mark_of(int(state.mark.split(" ", 1)[0])) if state.mark else ""
        # If there are later changes, a missing message was deleted, and the changes will remove its vector.
        return state.change > head.change or (current != state.mark and (bool(current) or state.change == head.change))

    def _discard_damaged(self, error: sqlite3.DatabaseError | OSError) -> None:
        if isinstance(error, sqlite3.DatabaseError) and is_damage(error):
            _log.warning("The index of vectors %s is damaged (%s). It will be rebuilt.", self.path, error)
            self.close()
            remove_file(self.path)


def _has_length(embedder: Embedder, state: VectorState) -> bool:
    """Whether the vectors in the file are as long as those of the embedder; a service may have replaced its model."""
    return not embedder.dimensions or state.dimensions in (0, embedder.dimensions)


def _numpy() -> Any:
    import numpy

    return numpy
