"""Refuses, in the child of a fork, what its parent had open.

SQLite counts in memory which locks its process has on each file. A child inherits the counts but not the locks, and its
own connections would take none: another process could then delete the log while the child writes to it. So a child
refuses every file that was open during the fork, and it neither uses nor closes a connection of its parent. Closing one
would write: it rolls back in the memory that the parent shares, and may empty or delete the log.

Every open home asks `require_same_process` first; a child opens Memoranda itself, after the fork.
"""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from weakref import WeakSet

from memoranda.errors import StorageError

# Every process lists its open files there; without it, so many numbers are tried.
_OPEN_FILES = "/dev/fd"
_MAX_DESCRIPTOR = 1024

# How many forks led to this process.
_forks = 0
# Device and inode of the files that were open when this process was forked.
_inherited: set[tuple[int, int]] = set()
_kept: WeakSet[Any] = WeakSet()


@runtime_checkable
class LeftToParent(Protocol):
    """What a child of this process neither uses nor closes."""

    def leave_to_parent(self) -> None:
        """Refuse every use from now on."""


def process_mark() -> int:
    """Return what `require_same_process` wants to know of an object that was opened now."""
    return _forks


def is_of_parent(mark: int) -> bool:
    """Whether an object was opened before this process was forked."""
    return mark != _forks


def require_same_process(mark: int, location: object) -> None:
    """Raise StorageError for what was opened before this process was forked."""
    if mark != _forks:
        raise forked_error(location)


def forked_error(location: object) -> StorageError:
    """The error for what the parent of a forked process had open."""
    return StorageError(
        f"{location} was opened before this process was forked, and only the parent can use it. Nothing was written. "
        "Open Memoranda after the fork."
    )


def keep_in_children(item: object) -> None:
    """Never destroy an object in a child of this process: its connections would be closed."""
    _kept.add(item)


def run_in_children(do: Callable[[], object]) -> None:
    """Call a function in the child of every fork, where the system has forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=do)


def file_identity(path: Path | str) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path; None if it does not exist."""
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
        raise OSError(errno.EBUSY, "the parent process had it open when it forked this one", str(path))


def _load_ctypes() -> None:
    # Before the fork, because in the child its import could wait for a thread that exists only in the parent.
    if _kept:
        import ctypes  # noqa: F401, PLC0415 - only programs that fork need it


def _refuse_in_child() -> None:
    global _forks  # noqa: PLW0603
    _forks += 1
    _inherited.update(_open_files())
    for item in list(_kept):
        _count_reference(item)
        if isinstance(item, LeftToParent):
            item.leave_to_parent()


def _count_reference(item: object) -> None:
    """Count a reference that is never dropped: the end of the interpreter drops every other one."""
    import ctypes  # noqa: PLC0415 - see `_load_ctypes`

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))


def _open_files() -> set[tuple[int, int]]:
    """Return device and inode of every open file of this process."""
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
    os.register_at_fork(before=_load_ctypes)
run_in_children(_refuse_in_child)
