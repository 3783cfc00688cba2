"""Keeps databases usable on both sides of a fork.

No transaction may be open during a fork: the child would inherit locks that nothing releases. No thread may be inside
SQLite: a mutex that SQLite holds at that time, even that of its allocator, stays locked in the child. A fork waits for
both, at most a second, and for nothing else; what the child must renew is in `files/fork_lock.py`.

And no connection may stay open. SQLite counts the locks that its process has on each file. A child inherits the counts,
but not the locks, and its own connections would take none: another process would then delete the log while the child
writes to it. So every idle connection is closed before a fork and opened again at its next use, and a child refuses the
files that its parent could not close.
"""

import errno
import logging
import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

# What is registered last prepares for a fork first. `logging` locks itself then, and a thread that we wait for may log,
# so it must have been loaded before this module.
_log = logging.getLogger(__name__)

# All databases together: a fork of the host program must not take longer. Indexing a batch takes less.
_TIMEOUT = 1.0
_PAUSE = 0.001
# Every process lists its open files there; without it, so many numbers are tried.
_OPEN_FILES = "/dev/fd"
_MAX_DESCRIPTOR = 1024


class WatchedDatabase(Protocol):
    """Returns the lock under which it writes, acquired; None if it could not be."""

    def lock_for_fork(self, timeout: float) -> "threading.RLock | None": ...


class IdleFile(Protocol):
    """Closes its idle connections before a fork; `alone` says that no other thread is inside SQLite."""

    def close_for_fork(self, alone: bool) -> None: ...


class ForkGate:
    """Counts the threads inside SQLite, each in a `with gate:`. A fork waits until all other threads have left."""

    def __init__(self) -> None:
        # A plain lock: an interrupt can leave any other kind half acquired.
        self._lock = threading.Lock()
        self._threads: dict[int, int] = {}
        self._forking = 0

    def __enter__(self) -> None:
        thread = threading.get_ident()
        while True:
            with self._lock:
                if self._forking in (0, thread) or thread in self._threads:
                    self._threads[thread] = self._threads.get(thread, 0) + 1
                    return
            time.sleep(_PAUSE)

    def __exit__(self, *_: object) -> None:
        thread = threading.get_ident()
        with self._lock:
            left = self._threads.pop(thread, 1) - 1
            if left:
                self._threads[thread] = left

    @property
    def is_wanted(self) -> bool:
        """Whether a fork waits for this thread, which should then come to an end soon."""
        return self._forking not in (0, threading.get_ident())

    def give_way(self) -> None:
        """Let a waiting fork happen now, during long work."""
        self.__exit__()
        self.__enter__()

    def hold_for_fork(self) -> bool:
        """Admit no other thread, and wait for those inside; False if one is still there after the timeout."""
        self._forking = threading.get_ident()
        while not self._is_free():
            if not _seconds_left():
                return False
            time.sleep(_PAUSE)
        return True

    def resume_after_fork(self) -> None:
        self._forking = 0

    def reset_in_child(self) -> None:
        """Forget the other threads: only the thread that forked exists in the child."""
        thread = threading.get_ident()
        self._lock, self._forking = threading.Lock(), 0
        self._threads = {thread: self._threads[thread]} if thread in self._threads else {}

    def _is_free(self) -> bool:
        with self._lock:
            return self._threads.keys() <= {threading.get_ident()}


gate = ForkGate()
_deadline = 0.0
_databases: WeakSet[WatchedDatabase] = WeakSet()
_idle_files: WeakSet[IdleFile] = WeakSet()
_locked: dict[WatchedDatabase, threading.RLock] = {}
# Device and inode of the files that were open when this process was forked.
_inherited: set[tuple[int, int]] = set()


def watch(database: WatchedDatabase) -> None:
    """Let forks wait for the transactions of a database, as long as the object exists."""
    _databases.add(database)


def close_before_forks(file: IdleFile) -> None:
    """Close the idle connections of a file before each fork, as long as the object exists."""
    _idle_files.add(file)


def watched_databases() -> list[WatchedDatabase]:
    """The databases of this process, open or closed."""
    return list(_databases)


def file_identity(path: Path | str) -> tuple[int, int] | None:
    """The device and inode of the file at a path; None if it does not exist."""
    # Not `suppress`: this is a part of every append.
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_inherited(path: Path) -> bool:
    """Whether the parent had the file open during the fork: SQLite takes no locks on it in this process."""
    return bool(_inherited) and file_identity(path) in _inherited


def refuse_inherited(path: Path) -> None:
    """Raise OSError for such a file."""
    if is_inherited(path):
        raise OSError(errno.EBUSY, "the parent process was using it when it forked this one", str(path))


def _seconds_left() -> float:
    """How long the fork may still wait; for every database until the same time."""
    return max(0.0, _deadline - time.monotonic())


def _lock_databases() -> None:
    for database in list(_databases):
        if database not in _locked and (lock := database.lock_for_fork(_seconds_left())):
            _locked[database] = lock


def _before() -> None:
    global _deadline  # noqa: PLW0603
    _deadline = time.monotonic() + _TIMEOUT
    _lock_databases()
    alone = gate.hold_for_fork()
    if not alone:
        _log.warning("A thread still uses SQLite; a process that is forked now cannot use the same files.")
    # Another thread may have opened one in the meantime.
    _lock_databases()
    for file in list(_idle_files):
        file.close_for_fork(alone)


def _after_in_parent() -> None:
    gate.resume_after_fork()
    while _locked:
        _locked.popitem()[1].release()


def _after_in_child() -> None:
    _locked.clear()
    gate.reset_in_child()
    _inherited.update(_open_files())


def _open_files() -> set[tuple[int, int]]:
    """Device and inode of every open file of this process."""
    try:
        numbers: Iterable[int] = map(int, os.listdir(_OPEN_FILES))
    except OSError:
        numbers = range(_MAX_DESCRIPTOR)
    found = set()
    for number in numbers:
        # Among the numbers is that of the list itself.
        with suppress(OSError):
            status = os.fstat(number)
            found.add((status.st_dev, status.st_ino))
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
