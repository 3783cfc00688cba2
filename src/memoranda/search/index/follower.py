"""A background thread that indexes new messages, so that searches have little left to index."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from memoranda.errors import MemorandaError

_log = logging.getLogger(__name__)

GATHER = 0.25
# Under a steady load appends never pause; then the index is this far behind, and the time that indexing takes.
_MAX_GATHER = 2.0
_PAUSE_AFTER_PROBLEM = 5.0
_MAX_MESSAGES_AT_ONCE = 10_000


class FollowingProgress(Protocol):
    """How far an index has followed the record, and why it cannot continue (None: it can)."""

    @property
    def complete(self) -> bool: ...
    @property
    def problem(self) -> str | None: ...


class Followed(NamedTuple):
    """The progress of an index that says nothing else."""

    complete: bool
    problem: str | None = None


class FollowingIndex(Protocol):
    """An index that a follower keeps up to date: of words, or of vectors."""

    def catch_up(self, *, limit: int | None = None) -> FollowingProgress: ...

    def check(self) -> None:
        """Looks for damage, unless it is noticed when the index is read."""
        return

    def needs_purge(self) -> bool:
        """Whether deleted words remain; not where every update removes them."""
        return False

    def purge(self) -> None:
        """Removes deleted words, if `needs_purge`."""
        return


class Nudged(Protocol):
    """What wakes a thread that indexes new messages."""

    def nudge(self, *, hurry: bool = ..., doubtful: bool = ...) -> None: ...


class Follower:
    """A thread that an append wakes; it waits until appends pause, and indexes the new messages together.

    The first nudge starts the thread. It is a daemon: the process can end at any time without waiting for it.
    """

    def __init__(self, open_index: Callable[[], FollowingIndex]) -> None:
        """The thread calls `open_index`, so that no append waits while the index is loaded."""
        self._open_index = open_index
        self._stopping = threading.Event()
        self._nudged = threading.Event()
        self._hurry = threading.Event()
        self._doubtful = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.others: list[Follower] = []
        """The followers of other indexes, which a nudge after an append wakes, too."""

    def nudge(self, *, hurry: bool = False, doubtful: bool = False) -> None:
        """Wakes the thread to index new messages: at once if `hurry`, after a check of the file if `doubtful`."""
        if hurry or doubtful:
            self._hurry.set()
        if doubtful:
            self._doubtful.set()
        # The event is usually set already, and checking it is cheaper than setting it.
        if not self._nudged.is_set():
            self._nudged.set()
        if self._thread is None or not self._thread.is_alive():
            self._start()
        if not hurry:
            for other in self.others:
                other.nudge()

    def close(self) -> None:
        """Stop after the current batch."""
        self._stopping.set()
        self._nudged.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        with self._starting:
            if self._stopping.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._run, name="memoranda-index", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._nudged.wait()
            if not self._gather():
                return
            try:
                self._follow()
            except (MemorandaError, OSError, sqlite3.Error) as error:
                # The next nudge retries, and a search catches up by itself in any case.
                _log.warning("The search index could not follow the sessions: %s", error)
                self._stopping.wait(_PAUSE_AFTER_PROBLEM)

    def _gather(self) -> bool:
        """Wait until appends pause, at most `_MAX_GATHER` seconds; False when the thread must stop."""
        deadline = time.monotonic() + _MAX_GATHER
        while self._nudged.is_set() and time.monotonic() < deadline and not self._hurry.is_set():
            self._nudged.clear()
            if self._stopping.wait(GATHER):
                return False
        self._nudged.clear()
        self._hurry.clear()
        return True

    def _follow(self) -> None:
        index = self._open_index()
        if self._doubtful.is_set():
            self._doubtful.clear()
            index.check()
        while not self._stopping.is_set():
            state = index.catch_up(limit=_MAX_MESSAGES_AT_ONCE)
            if state.problem is not None:
                _log.info("The search index pauses: %s.", state.problem)
                self._stopping.wait(_PAUSE_AFTER_PROBLEM)
                return
            if state.complete:
                break
        if not self._stopping.is_set() and index.needs_purge():
            index.purge()
