"""What the child of a fork renews: locks, threads and connections of its parent are not its own.

Only the thread that forks exists in the child. A plain lock that another thread held at that moment stays locked there
for ever, so what background threads and their callers share needs a `ForkLock`. An object with a thread or a connection
registers itself to forget them; a connection must neither be used nor closed in the child.
"""

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Forgets in the child of a fork what belongs to its parent; it takes no lock."""

    def reset_in_child(self) -> None: ...


_renewed: WeakSet[Renewable] = WeakSet()
# Dropping the last reference to a connection would close it.
_of_parent: list[object] = []


def renew_in_child(item: Renewable) -> None:
    """Reset an object in the child of every fork, as long as it exists."""
    _renewed.add(item)


def leave_to_parent(*connections: object) -> None:
    """Keep connections of the parent, which this process neither uses nor closes."""
    _of_parent.extend(connections)


class ForkLock:
    """Like `threading.Lock`, but free in the child of a fork, unless the thread that forked holds it itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        _renewed.add(self)

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


def _renew_all() -> None:
    for item in list(_renewed):
        item.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
