"""The search index of a store: a cache that follows the record, rebuilds itself, and never blocks a caller.

No caller sees an error of its file: a damaged file is deleted and rebuilt from the record, a file that cannot be used
now is not changed, and meanwhile searches read the record itself.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from memoranda.errors import StorageError
from memoranda.memory.record.feed import Feed, Head
from memoranda.memory.record.store_part import StorePart
from memoranda.search.index import doc_sets, generations
from memoranda.search.index import generations as tables
from memoranda.search.index.generations import describe_error, is_damage
from memoranda.search.index.index_file import IndexFile, IndexState, open_newest
from memoranda.search.index.postings import Pattern
from memoranda.search.index.reader import IndexConnection, IndexReader
from memoranda.search.index.unindexed_scan import MAX_READ_ALL
from memoranda.search.index.updater import IndexUpdater
from memoranda.storage.engine import Statement
from memoranda.storage.position import START, Position
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

BATCH = 10_000
_MAX_REBUILDS = 3
_LOCK_TIMEOUT = 0.05
_CHECK_AGAIN_AFTER = 86_400.0
_MAX_COUNTS = 1_000
_PAUSE = 0.0005

Progress = Callable[[int, int], None]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far the index has followed the record, and why it cannot continue (None: it can)."""

    indexed: Position
    head: Position
    problem: str | None

    @property
    def complete(self) -> bool:
        return self.indexed >= self.head


class SearchIndex:
    """The index beside a store. `path` is the common prefix of its files: see `generations`."""

    def __init__(self, path: Path, feed: Feed, *, max_refresh: int | None = None) -> None:
        """A search indexes up to `max_refresh` new messages first; with more, it reads them from the record."""
        self._path = path
        self._feed = feed
        self._max_refresh = max_refresh
        self._lock = threading.RLock()
        self._open: IndexFile | None = None
        self._problem: str | None = None
        self._counts: tuple[Head | None, dict[Pattern, int]] = (None, {})
        self._thread = threading.local()

    @property
    def files(self) -> list[Path]:
        """The existing files of the index, the one in use first."""
        return generations.generations(self._path)

    def state(self) -> IndexProgress:
        """How much is indexed; does not index anything."""
        head = self._feed.head()
        with self._lock:
            state = self._use_file(lambda file: file.state())
        return IndexProgress(START if state is None else state.message, head.message, self._problem)

    def catch_up(self, *, limit: int | None = None, progress: Progress | None = None) -> IndexProgress:
        """Index new messages in short transactions, at most `limit`. Several processes may do it at once."""
        requested = 0
        while True:
            size = BATCH if limit is None else min(BATCH, limit - requested)
            head = self._feed.head()
            with self._lock:
                more, after = self._step(head, size)
            if progress is not None:
                progress(after.count, max(after, head.message).count)
            requested += size
            if not more or (limit is not None and requested >= limit):
                break
            # Searches wait for the same lock, and without a pause this thread would always get it.
            time.sleep(_PAUSE)
        problem = self._problem
        if problem is None and after >= head.message:
            with self._lock:
                self._use_file(IndexFile.release_free_pages)
        return IndexProgress(after, max(after, head.message), problem)

    @contextmanager
    def one_head(self, part: StorePart, *statements: Statement) -> Iterator[list[list[Any]]]:
        """In the block, all searches of this thread see what was committed before; gives the rows of statements.

        So a search that asks several times needs one round trip for what it asks first.
        """
        self._thread.head, rows = self._feed.head_and_rows(part, statements)
        try:
            yield rows
        finally:
            self._thread.head = None

    @contextmanager
    def reading(self) -> Iterator[IndexReader]:
        """One consistent view for a search; it includes everything that was committed before the call."""
        head: Head = getattr(self._thread, "head", None) or self._feed.head(visible=True)
        with ExitStack() as stack:
            view = None
            lock = self._lock
            # While another thread writes, the file is read as it was before. Only under the lock is a file opened or
            # closed: closing a connection that another thread uses would crash the process.
            locked = lock.acquire(timeout=_LOCK_TIMEOUT)
            opened = None if locked else self._opened_file()
            if not locked and opened is None:
                locked = lock.acquire()
            try:
                if locked:
                    self._refresh(head)
                view = self._use_file(lambda file: self._view(file, stack), opened)
            finally:
                if locked:
                    lock.release()
            reader = IndexReader(self._feed, head, view, self._problem, self._counts_at(head))
            stack.callback(reader.close)
            yield reader

    def _counts_at(self, head: Head) -> dict[Pattern, int]:
        """The frequencies that readers of the same record have counted; a hook asks for each of them twice."""
        known, counts = self._counts
        if known != head or len(counts) > _MAX_COUNTS:
            counts = {}
            self._counts = (head, counts)
        return counts

    def check(self) -> None:
        """Look for damage that no search has noticed, unless the file was checked lately; deletes a damaged file.

        Nothing waits for it: it reads the file on a connection of its own, without the lock of searches and updates.
        """
        with self._lock:
            opened = self._use_file(lambda file: (file, file.state().checked))
        if opened is None or time.time() - opened[1] < _CHECK_AGAIN_AFTER:
            return
        file = opened[0]
        try:
            file.check()
        except sqlite3.DatabaseError as error:
            self._discard(file, error)
        else:
            with self._lock:
                self._use_file(IndexFile.write_checked)

    def purge(self) -> None:
        """Remove every word of deleted messages from the file, in time proportional to the parts that have them.

        If another process prevents that, the file is rebuilt, and the old one deleted.
        """
        self.catch_up()
        self._remove_dead()

    def forget_deleted(self, change: Position) -> bool:
        """Remove the words of what was deleted up to a change, without indexing new messages; False if they remain."""
        more = True
        while more:
            with self._lock:
                more = bool(self._use_file(self._follow_changes))
        self._remove_dead()
        with self._lock:
            return bool(self._use_file(lambda file: file.state().change >= change and not file.has_dead()))

    def _remove_dead(self) -> None:
        more: bool | None = True
        while more:
            with self._lock:
                more = self._use_file(IndexFile.purge)
            time.sleep(_PAUSE)
        with self._lock:
            emptied = more is not None and self._use_file(IndexFile.empty_log)
        if not emptied:
            self.compact()

    def needs_purge(self) -> bool:
        """Whether the file has words of deleted messages."""
        with self._lock:
            return bool(self._use_file(IndexFile.has_dead))

    def is_empty(self) -> bool:
        """Whether the file has no session, not even a word of a deleted one."""
        with self._lock:
            return bool(self._use_file(lambda file: not file.state().sessions and not file.has_dead()))

    def compact(self, progress: Progress | None = None) -> None:
        """Rebuild into a new file that replaces the old one, which is deleted with every word in it."""
        file = generations.next_generation(self._path)
        try:
            with generations.create_generation(file) as connection:
                self._build(connection, progress)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"The search index could not be rebuilt: {describe_error(error)}.") from error
        with self._lock:
            self._close()
            generations.remove_older(self._path, file)

    def _build(self, connection: sqlite3.Connection, progress: Progress | None) -> None:
        tables.create(connection, self._feed.store_id())
        connection.execute("BEGIN")
        # One updater, which writes whole blocks: nothing has to be merged later.
        updater = IndexUpdater(connection, self._feed)
        more = True
        while more:
            head = self._feed.head()
            more = updater.follow(BATCH)
            if progress is not None:
                progress(updater.state.message.count, max(updater.state.message, head.message).count)
        updater.close()
        connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._close()

    def _step(self, head: Head, size: int) -> tuple[bool, Position]:
        """Index one batch; returns whether there may be more, and the position reached."""
        for _ in range(_MAX_REBUILDS):
            moved = self._use_file(lambda file: self._follow(file, head, size))
            if moved is not None or self._problem is not None:
                break
        return moved or (False, START)

    def _follow(self, file: IndexFile, head: Head, size: int) -> tuple[bool, Position]:
        state = file.state()
        if state.message >= head.message and state.change >= head.change:
            return False, state.message
        with file.writing() as connection:
            updater = IndexUpdater(connection, self._feed)
            more = updater.follow(size)
            # Far behind, whole blocks are written, which need not be merged later.
            while more and size == BATCH and self._behind(state, head) > doc_sets.BLOCK:
                left = -updater.state.next_doc % doc_sets.BLOCK
                if not left or updater.state.next_doc // doc_sets.BLOCK > state.next_doc // doc_sets.BLOCK:
                    break
                more = updater.follow(min(size, left))
            updater.close()
        return more, updater.state.message

    def _behind(self, state: IndexState, head: Head) -> int:
        """At most how many messages are not indexed."""
        if state.message >= head.message:
            return 0
        return self._feed.count_up_to(head.message) - self._feed.count_up_to(state.message)

    def _refresh(self, head: Head) -> None:
        """Bring the file up to date if that is quick; deletions are applied in any case."""
        state = self._use_file(lambda file: file.state())
        if state is None or (state.message >= head.message and state.change >= head.change):
            return
        max_refresh = MAX_READ_ALL if self._max_refresh is None else self._max_refresh
        if self._behind(state, head) <= max_refresh:
            # Up to this head and no further: others may append faster than this thread can index.
            more = True
            while more:
                more, _ = self._step(head, BATCH)
            self._use_file(IndexFile.release_free_pages)
        else:
            more = state.change < head.change
            while more:
                more = bool(self._use_file(self._follow_changes))

    def _follow_changes(self, file: IndexFile) -> bool:
        with file.writing() as connection:
            updater = IndexUpdater(connection, self._feed)
            more = updater.follow_changes()
            updater.close()
        return more

    def _use_file(self, ask: Callable[[IndexFile], _Answer], opened: IndexFile | None = None) -> _Answer | None:
        """Open the file and use it; None if it fails. `_problem` says why, unless a new file solves it.

        The caller has the lock, or names the open file.
        """
        self._problem = None
        try:
            file = opened or self._current()
            try:
                return ask(file)
            except sqlite3.DatabaseError as error:
                self._discard(file, error)
                raise
        except sqlite3.DatabaseError as error:
            self._problem = None if is_damage(error) else describe_error(error)
        except OSError as error:
            self._problem = describe_error(error)
        return None

    def _opened_file(self) -> IndexFile | None:
        """The open file, if its path still names it."""
        file = self._open
        return file if file is not None and file.is_current() else None

    def _current(self) -> IndexFile:
        file = self._opened_file()
        if file is None:
            self._close()
            file = open_newest(self._path, self._feed.store_id(), partial(find_mismatch, feed=self._feed))
            self._open = file
        return file

    def _view(self, file: IndexFile, stack: ExitStack) -> IndexConnection:
        return IndexConnection(stack.enter_context(file.reading()), lambda error: self._discard(file, error))

    def _discard(self, file: IndexFile, error: sqlite3.DatabaseError) -> None:
        """Delete a damaged file, unless another thread has already done so."""
        if not is_damage(error) or file.read_only:
            return
        with self._lock:
            if file is self._open:
                _log.warning("The search index %s is damaged (%s). It will be rebuilt.", file.file, error)
                self._close()
                generations.remove(file.file)

    def _close(self) -> None:
        self._counts = (None, {})
        if self._open is not None:
            self._open.close()
            self._open = None


def find_mismatch(state: IndexState, feed: Feed) -> str | None:
    """Why an index does not belong to this store; None if it does.

    A store that was restored from an older copy assigns the same ids to other messages.
    """
    if (state.store, state.format) != (feed.store_id(), tables.FORMAT):
        return "it belongs to another store or another version"
    head = feed.head()
    if not state.mark:
        return None if state.change <= head.change else "the sessions are older than the index"
    current_mark = feed.mark_of(int(state.mark.split(" ", 1)[0]))
    # If there are later changes, a missing message was deleted, and the changes will remove it from the index.
    if state.change > head.change or (current_mark != state.mark and (current_mark or state.change == head.change)):
        return "the sessions are not those that were indexed"
    return None
