"""Keeps databases usable on both sides of a fork.

No transaction may be open at the moment of a fork: the child would inherit its locks and never get them. And the
child must not use, or close, the connections of its parent.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """A database that can wait for a fork and survive it."""

    def hold_for_fork(self) -> bool: ...
    def go_on_after_fork(self) -> None: ...
    def leave_parent_process(self) -> None: ...


_live: WeakSet[Forkable] = WeakSet()
_held: list[Forkable] = []


def watch(database: Forkable) -> None:
    """Take care of a database as long as it lives."""
    _live.add(database)


def _before() -> None:
    _held.extend(database for database in list(_live) if database.hold_for_fork())


def _after_in_parent() -> None:
    while _held:
        _held.pop().go_on_after_fork()


def _after_in_child() -> None:
    _held.clear()
    for database in list(_live):
        database.leave_parent_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
