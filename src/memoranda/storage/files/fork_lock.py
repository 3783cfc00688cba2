"""A lock that another thread cannot leave locked in the child of a fork.

Only the thread that forks exists in the child. A plain lock that another thread held at that moment stays locked there
for ever, so what background threads and their callers share needs this one.
"""

import os
import threading
from weakref import WeakSet


class ForkLock:
    """Like `threading.Lock`, but free in the child of a fork, unless the thread that forked holds it itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        _locks.add(self)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        acquired = self._lock.acquire(blocking, timeout)
        if acquired:
            self._owner = threading.get_ident()
        return acquired

    def release(self) -> None:
        self._owner = 0
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def reset_in_child(self) -> None:
        if self._owner != threading.get_ident():
            self._lock, self._owner = threading.Lock(), 0


def fork_condition() -> threading.Condition:
    """A condition with such a lock."""
    # It accepts whatever can be acquired and released.
    return threading.Condition(ForkLock())  # type: ignore[arg-type]


_locks: WeakSet[ForkLock] = WeakSet()


def _reset_all() -> None:
    for lock in list(_locks):
        lock.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
