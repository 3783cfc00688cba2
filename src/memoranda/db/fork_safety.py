"""Keeps databases usable on both sides of a fork.

No transaction may be open at the moment of a fork: the child would inherit its locks and never get them. No thread may
be inside SQLite: what SQLite itself has locked just then stays so in the child, even the memory it allocates. And the
child must not use, or close, the connections of its parent.
"""

import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

_PATIENCE = 2.0
_PAUSE = 0.001


class Forkable(Protocol):
    """A database that can wait for a fork and survive it."""

    def hold_for_fork(self) -> bool: ...
    def resume_after_fork(self) -> None: ...
    def reset_in_child(self) -> None: ...


class ForkGate:
    """Threads pass it on their way into SQLite and out again: `with inside:`. A fork waits until all others are out."""

    def __init__(self) -> None:
        # Nothing but a plain lock: an interrupt can come into the midst of taking any other.
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
        """In the midst of long work: let a fork that waits happen now."""
        self.__exit__()
        self.__enter__()

    def hold_for_fork(self) -> None:
        """Let nobody else in, and wait for those who are; but not for one who stays."""
        self._forking, deadline = threading.get_ident(), time.monotonic() + _PATIENCE
        while not self._is_free() and time.monotonic() < deadline:
            time.sleep(_PAUSE)

    def resume_after_fork(self) -> None:
        self._forking = 0

    def reset_in_child(self) -> None:
        """Only the thread that has forked is here."""
        thread = threading.get_ident()
        self._lock, self._forking = threading.Lock(), 0
        self._threads = {thread: self._threads[thread]} if thread in self._threads else {}

    def _is_free(self) -> bool:
        with self._lock:
            return self._threads.keys() <= {threading.get_ident()}


gate = ForkGate()
# Whoever opens databases is held before the databases: then each is open and known here, or not yet begun.
_openers: WeakSet[Forkable] = WeakSet()
_databases: WeakSet[Forkable] = WeakSet()
_held: list[Forkable] = []


def watch(database: Forkable, *, opens: bool = False) -> None:
    """Take care of a database, or of somebody who opens one, as long as it lives."""
    (_openers if opens else _databases).add(database)


def watched() -> list[Forkable]:
    """The databases that this process has, open or closed."""
    return list(_databases)


def _before() -> None:
    for group in (_openers, _databases):
        _held.extend(each for each in list(group) if each.hold_for_fork())
    gate.hold_for_fork()


def _after_in_parent() -> None:
    gate.resume_after_fork()
    while _held:
        _held.pop().resume_after_fork()


def _after_in_child() -> None:
    _held.clear()
    gate.reset_in_child()
    for each in (*_databases, *_openers):
        each.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
