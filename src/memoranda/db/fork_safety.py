"""Keeps databases usable on both sides of a fork.

No transaction may be open during a fork: the child would inherit locks that nothing releases. No thread may be inside
SQLite: a mutex that SQLite holds at that time, even that of its allocator, stays locked in the child. And the child
must not use or close the connections of its parent.
"""

import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

_TIMEOUT = 2.0
_PAUSE = 0.001


class Forkable(Protocol):
    """A database, or an object that opens one, that prepares for a fork and works on both sides of it."""

    def hold_for_fork(self) -> bool: ...
    def resume_after_fork(self) -> None: ...
    def reset_in_child(self) -> None: ...


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

    def give_way(self) -> None:
        """Let a waiting fork happen now, during long work."""
        self.__exit__()
        self.__enter__()

    def hold_for_fork(self) -> None:
        """Admit no other thread, and wait for those inside, at most until the timeout."""
        self._forking, deadline = threading.get_ident(), time.monotonic() + _TIMEOUT
        while not self._is_free() and time.monotonic() < deadline:
            time.sleep(_PAUSE)

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
# Openers are held before databases: then every database is either open and registered, or not being opened.
_openers: WeakSet[Forkable] = WeakSet()
_databases: WeakSet[Forkable] = WeakSet()
_held: list[Forkable] = []


def watch(database: Forkable, *, opens: bool = False) -> None:
    """Prepare a database, or an object that opens one (`opens`), for forks as long as the object exists."""
    (_openers if opens else _databases).add(database)


def watched_databases() -> list[Forkable]:
    """The databases of this process, open or closed."""
    return list(_databases)


def _before() -> None:
    for group in (_openers, _databases):
        _held.extend(item for item in list(group) if item.hold_for_fork())
    gate.hold_for_fork()


def _after_in_parent() -> None:
    gate.resume_after_fork()
    while _held:
        _held.pop().resume_after_fork()


def _after_in_child() -> None:
    _held.clear()
    gate.reset_in_child()
    for item in (*_databases, *_openers):
        item.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
