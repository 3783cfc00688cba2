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


def _after_in_parent() -> None:
    while _held:
        _held.pop().go_on_after_fork()


def _after_in_child() -> None:
    _held.clear()
    for each in (*_databases, *_openers):
        each.leave_parent_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
