"""The search index of a store: a cache that follows it, heals itself, and is never in anybody's way.

Whatever happens to its file, no caller sees an error of it: a damaged file is deleted and made again from the truth,
one that cannot be used is left alone, and meanwhile searches ask the truth itself.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from memoranda.db import fork_safety
from memoranda.db.position import START, Position
from memoranda.errors import StorageError
from memoranda.index import generations, tables
from memoranda.index.index_file import IndexFile, IndexState, open_newest
from memoranda.index.reader import IndexConnection, IndexReader
from memoranda.index.sqlite_errors import describe_error, is_damage
from memoranda.index.unindexed_scan import FEW
from memoranda.index.updater import IndexUpdater
from memoranda.sessions.feed import Feed, Head

_log = logging.getLogger(__name__)

BATCH = 10_000
_MOST_HEALINGS = 3
# So large a part of the tokens may lead nowhere before a rebuild pays.
_DEAD_SHARE = 0.25
_FEW_DEAD = 2_000
_PATIENCE = 2.0
_BREATH = 0.0005

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
    """The index beside a store. `path` stands for its files: see `generations`."""

    def __init__(self, path: Path, feed: Feed) -> None:
        self._path = path
        self._feed = feed
        self._process = os.getpid()
        self._thread_lock = threading.RLock()
        self._open: IndexFile | None = None
        self._problem: str | None = None

    @property
    def files(self) -> list[Path]:
        """The files of the index that are there, the one in use first."""
        return generations.generations(self._path)

    def state(self) -> IndexProgress:
        """How far the index has got; nothing is pulled."""
        head = self._feed.head()
        with self._lock:
            state = self._usable(lambda file: file.state())
        return IndexProgress(START if state is None else state.message, head.message, self._problem)

    def catch_up(self, *, most: int | None = None, progress: Progress | None = None) -> IndexProgress:
        """Pull what is new, in short transactions; at most so many messages. Any number of processes may do it."""
        pulled = 0
        while True:
            size = BATCH if most is None else min(BATCH, most - pulled)
            head = self._feed.head()
            with self._lock:
                more, after = self._step(head, size)
            if progress is not None:
                progress(after.count, max(after, head.message).count)
            pulled += size
            if not more or (most is not None and pulled >= most):
                break
            # Searches wait for the same lock, which would go to whoever runs already.
            time.sleep(_BREATH)
        problem = self._problem
        if problem is None and after >= head.message:
            with self._lock:
                self._usable(IndexFile.give_back_room)
        return IndexProgress(after, max(after, head.message), problem)

    @contextmanager
    def reading(self) -> Iterator[IndexReader]:
        """One consistent view for a search; it includes everything that was committed before."""
        head = self._feed.head()
        with ExitStack() as stack:
            view = None
            lock = self._lock
            if lock.acquire(timeout=_PATIENCE):
                try:
                    self._freshen(head)
                    stack.enter_context(fork_safety.gate)
                    view = self._usable(lambda file: self._view(file, stack))
                finally:
                    lock.release()
            reader = IndexReader(self._feed, head, view, self._problem)
            stack.callback(reader.close)
            yield reader

    def check(self) -> None:
        """Look for damage that no search has stumbled over, once for each file; a damaged one is discarded."""
        with self._lock:
            if self._open is None or not self._open.checked:
                self._usable(IndexFile.check)

    def wants_compacting(self) -> bool:
        """Whether so much of the file is dead that it should be rebuilt."""
        with self._lock:
            state = self._usable(lambda file: file.state())
        return state is not None and state.dead > max(_FEW_DEAD, _DEAD_SHARE * state.messages)

    def compact(self, progress: Progress | None = None) -> None:
        """Rebuild into a new file and put it in place of the old one, which is deleted with every word in it."""
        file = generations.next_generation(self._path)
        try:
            with fork_safety.gate, generations.making(file) as connection:
                self._build(connection, progress)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"The search index could not be rebuilt: {describe_error(error)}.") from error
        with self._lock, fork_safety.gate:
            self._close()
            generations.remove_older(self._path, file)

    def _build(self, connection: sqlite3.Connection, progress: Progress | None) -> None:
        tables.create(connection, self._feed.store_id())
        more = True
        while more:
            head = self._feed.head()
            connection.execute("BEGIN")
            updater = IndexUpdater(connection, self._feed)
            more = updater.follow(BATCH)
            updater.close()
            connection.execute("COMMIT")
            fork_safety.gate.give_way()
            if progress is not None:
                progress(updater.state.message.count, max(updater.state.message, head.message).count)
        # One segment per table: smallest and fastest, and nobody waits for it here.
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.execute("INSERT INTO pairs (pairs) VALUES ('optimize')")
        connection.execute("VACUUM")

    def close(self) -> None:
        with self._lock, fork_safety.gate:
            self._close()

    @property
    def _lock(self) -> threading.RLock:
        """Only one thread uses the writing connection, or opens and closes the file."""
        if self._process != os.getpid():
            self._leave_parent_process()
        return self._thread_lock

    def _step(self, head: Head, size: int) -> tuple[bool, Position]:
        """One batch: whether there may be more, and how far the index has got."""
        for _ in range(_MOST_HEALINGS):
            moved = self._usable(lambda file: self._follow(file, head, size))
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
            updater.close()
        return more, updater.state.message

    def _freshen(self, head: Head) -> None:
        """Bring the file up to date if that is a matter of moments; deletions reach it in any case."""
        state = self._usable(lambda file: file.state())
        if state is None or (state.message >= head.message and state.change >= head.change):
            return
        if head.message.count - state.message.count <= FEW:
            self.catch_up(most=FEW + BATCH)
        else:
            more = True
            while more:
                more = bool(self._usable(self._follow_changes))

    def _follow_changes(self, file: IndexFile) -> bool:
        with file.writing() as connection:
            updater = IndexUpdater(connection, self._feed)
            more = updater.follow_changes()
            updater.close()
        return more

    def _usable(self, ask: Callable[[IndexFile], _Answer]) -> _Answer | None:
        """Ask the file, opening it first; None when it fails, with a problem in words unless a new one will do."""
        self._problem = None
        try:
            with fork_safety.gate:
                file = self._current()
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

    def _current(self) -> IndexFile:
        if self._open is not None and not self._open.is_current():
            self._close()
        if self._open is None:
            self._open = open_newest(self._path, self._feed.store_id(), partial(find_mismatch, feed=self._feed))
        return self._open

    def _view(self, file: IndexFile, stack: ExitStack) -> IndexConnection:
        return IndexConnection(stack.enter_context(file.reading()), lambda error: self._discard(file, error))

    def _discard(self, file: IndexFile, error: sqlite3.DatabaseError) -> None:
        """Delete a file that turned out to be damaged, if somebody else has not done it already."""
        if not is_damage(error) or file.read_only:
            return
        with self._lock:
            if file is self._open:
                _log.warning("The search index %s is damaged (%s). It is made again.", file.file, error)
                self._close()
                generations.remove(file.file)

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _leave_parent_process(self) -> None:
        """After a fork: what the parent has open or locked is not ours."""
        if self._open is not None:
            self._open.leave_to_parent()
        self._open, self._process, self._thread_lock = None, os.getpid(), threading.RLock()


def find_mismatch(state: IndexState, feed: Feed) -> str | None:
    """Why an index is none of this store; None when it is.

    Where a store was put back from an older copy, its numbers are given again to other messages.
    """
    if (state.store, state.format) != (feed.store_id(), tables.FORMAT):
        return "it belongs to another store or another version"
    head = feed.head()
    if not state.mark:
        return None if state.change <= head.change else "the sessions are older than it"
    there = feed.mark_of(int(state.mark.split(" ", 1)[0]))
    # A message that is gone was deleted if something has changed since, and that is followed.
    if state.change > head.change or (there != state.mark and (there or state.change == head.change)):
        return "the sessions are not those that it has seen"
    return None
