"""A file lock between processes and threads, with a timeout, that can name its holder.

It uses the system's own lock (`flock`, on Windows a byte-range lock), which the system releases when the process ends,
kill -9 included. The holder writes its name into the lock file, where it stays until the next holder overwrites it.
The lock file is never deleted. A forked process holds none of its parent's locks: it closes its descriptors of them, so
that the system releases the locks when the parent ends.
"""

import errno
import json
import os
import random
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self
from weakref import WeakSet

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.storage.forks import run_in_children
from memoranda.support.durable_files import open_without_following

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# On Windows others cannot read a locked region, so the lock is far after the name of the holder.
_WINDOWS_LOCK_OFFSET = 1 << 30
_BUSY = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}
_FIRST_PAUSE, _MAX_PAUSE = 0.001, 0.02


class FileLock:
    """Exclusive use of what a lock file protects: `with FileLock(path, timeout=10): …`."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._timeout
        while self._descriptor is None:
            descriptor = open_without_following(self._path)
            try:
                self._wait(descriptor, deadline)
                if _is_file_at(descriptor, self._path):
                    # The name only serves error messages; the lock works without it.
                    with suppress(OSError):
                        _write_holder(descriptor)
                    self._descriptor = descriptor
                    _held.add(self)
            finally:
                if self._descriptor is None:
                    os.close(descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            # In a process that was forked inside the block; unlocking would take the lock from the parent.
            return
        try:
            _unlock(descriptor)
        finally:
            os.close(descriptor)

    def close_in_child(self) -> None:
        """Close the descriptor in the child of a fork, without unlocking."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _wait(self, descriptor: int, deadline: float) -> None:
        pause = _FIRST_PAUSE
        while not _try_lock(descriptor, self._path):
            if time.monotonic() >= deadline:
                raise LockTimeoutError(
                    f"{self._path.parent} is locked by {lock_holder(self._path)}; waited {self._timeout:g} s. "
                    "Nothing was written. Try again when that process is done, or stop it."
                )
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, _MAX_PAUSE)


_held: WeakSet[FileLock] = WeakSet()


def _close_in_child() -> None:
    for lock in list(_held):
        lock.close_in_child()


run_in_children(_close_in_child)


def _is_file_at(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one that others will open; a user may have deleted it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def lock_holder(path: Path) -> str:
    """Describes the process that wrote its name into a lock file last."""
    try:
        name = json.loads(path.read_text("utf-8"))
        return f"process {name['pid']} ({name['program']}) on {name['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process that left no name"


def _write_holder(descriptor: int) -> None:
    """Write the name of this process, unless the file still has it from the last time."""
    name = _name(os.getpid())
    if os.read(descriptor, len(name) + 1) != name:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.ftruncate(descriptor, os.write(descriptor, name))


@cache
def _name(process: int) -> bytes:
    import platform  # noqa: PLC0415 - it compiles nine expressions, and a command that only reads locks nothing

    program = os.path.basename(sys.argv[0]) or "python"
    return json.dumps({"pid": process, "program": program, "host": platform.node()}).encode()


def _try_lock(descriptor: int, path: Path) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _WINDOWS_LOCK_OFFSET, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise StorageError(
            f"{path} cannot be locked: {error.strerror}. The file system may not support locks; "
            "choose a home on a local disk."
        ) from error
    return True


def _unlock(descriptor: int) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, _WINDOWS_LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
