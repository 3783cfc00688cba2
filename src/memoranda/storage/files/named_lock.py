"""Locks by name between threads and processes; the system releases them when their holder ends, even by kill -9.

All names share one lock file: the hash of a name selects a byte of it, and the system locks that byte. Nothing is ever
written to the file, and it is never deleted. The system's byte locks belong to a process, not to a thread, and closing
any descriptor of the file releases all of them. So one descriptor serves the whole process, and a registry records
which names this process holds. A forked process does not inherit these locks, so it cannot keep those of a killed
parent.
"""

import errno
import hashlib
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.storage.forks import run_in_children
from memoranda.support.durable_files import open_without_following
from memoranda.support.interrupts import interruptible

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# With so many bytes, two names practically never share one. Windows locks only in the first 2 GiB of a file.
_SLOT_BITS = 30 if sys.platform == "win32" else 62
_BUSY = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}
_FIRST_PAUSE, _MAX_PAUSE = 0.001, 0.03


class NamedLock:
    """A name in a lock file: locked from `acquire` until `release`, or until this object is dropped."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = os.path.abspath(path)
        self._slot = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> (64 - _SLOT_BITS)
        self._claim: _Claim | None = None

    def acquire(self, timeout: float) -> None:
        """Wait for the lock; raises LockTimeoutError when another holder keeps it for more than `timeout` seconds.

        The threads of one process get it in the order in which they asked. A thread that runs an event loop does not
        wait for a lock that it took itself: the code that would release the lock cannot run meanwhile.
        """
        self._claim = claim = _Claim(threading.get_ident())
        deadline, pause = time.monotonic() + timeout, _FIRST_PAUSE
        try:
            while (holder := _registry.claim(self._path, self._slot, claim)) is not claim:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or (holder and holder.thread == claim.thread and _runs_event_loop()):
                    raise LockTimeoutError(f"{self._path} is locked by {'this' if holder else 'another'} process.")
                with interruptible:
                    time.sleep(min(remaining, pause * random.uniform(0.5, 1.5)))
                pause = min(pause * 2, _MAX_PAUSE)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        if self._claim is not None:
            _registry.release(self._path, self._slot, self._claim)
            self._claim = None

    __del__ = release


class _Claim:
    """One attempt to get a lock: in the registry it is the holder of a byte, or waits in the queue for it."""

    def __init__(self, thread: int) -> None:
        self.thread = thread


class _LockFile:
    """A lock file in this process: the holder of each byte and the claims that wait. Used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._descriptor: int | None = None
        self._path = path
        self._holders: dict[int, _Claim] = {}
        self._queues: dict[int, list[_Claim]] = {}

    def claim(self, slot: int, claim: _Claim) -> _Claim | None:
        """Lock a free byte if the claim is first in the queue; returns the holder, None for another process."""
        queue = self._queues.setdefault(slot, [])
        if claim not in queue:
            queue.append(claim)
        if slot in self._holders or queue[0] is not claim:
            return self._holders.get(slot, queue[0])
        # Registered before the byte is locked, so that `drop` unlocks it after an interrupt in between.
        self._holders[slot] = claim
        if not self._lock_byte(slot):
            del self._holders[slot]
            return None
        self._leave_queue(slot, claim)
        return claim

    def drop(self, slot: int, claim: _Claim) -> None:
        """Give up what a claim holds or waits for; an interrupted call can be repeated."""
        self._leave_queue(slot, claim)
        if self._holders.get(slot) is claim:
            self._unlock_byte(slot)
            del self._holders[slot]

    def close_if_unused(self) -> bool:
        if self._holders or self._queues:
            return False
        self.close()
        return True

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _leave_queue(self, slot: int, claim: _Claim) -> None:
        queue = [other for other in self._queues.pop(slot, []) if other is not claim]
        if queue:
            self._queues[slot] = queue

    def _lock_byte(self, slot: int) -> bool:
        try:
            if self._descriptor is None:
                self._descriptor = open_without_following(Path(self._path))
            if sys.platform == "win32":
                os.lseek(self._descriptor, slot, os.SEEK_SET)
                msvcrt.locking(self._descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
        except OSError as error:
            if error.errno in _BUSY and self._descriptor is not None:
                return False
            raise StorageError(
                f"{self._path} cannot be locked: {error.strerror}. Check that this user may write to the directory and "
                "that its file system supports locks."
            ) from error
        return True

    def _unlock_byte(self, slot: int) -> None:
        if self._descriptor is None:
            return
        # Windows raises an error for a byte that is not locked, which an interrupt before its lock can cause.
        with suppress(OSError):
            if sys.platform == "win32":
                os.lseek(self._descriptor, slot, os.SEEK_SET)
                msvcrt.locking(self._descriptor, msvcrt.LK_UNLCK, 1)
            else:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, slot)


class _Registry:
    """The lock files that this process uses."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # The threads that hold the mutex or wait for it.
        self._threads: set[int] = set()
        self._files: dict[str, _LockFile] = {}
        # Released claims that may still be registered, the oldest first.
        self._released: deque[tuple[str, int, _Claim]] = deque()

    def claim(self, path: str, slot: int, claim: _Claim) -> _Claim | None:
        """Lock a byte if it is free; returns the holder, None for another process."""
        self._drop_released()
        with self._exclusive():
            holder = self._file(path).claim(slot, claim)
        self._drop_released()
        return holder

    def release(self, path: str, slot: int, claim: _Claim) -> None:
        """Give up a claim; an interrupted call can be repeated."""
        self._released.append((path, slot, claim))
        # The garbage collector may call this in a thread that holds the mutex; that thread drops the claim later.
        if not (self._mutex.locked() and threading.get_ident() in self._threads):
            self._drop_released()

    def reset_in_child(self) -> None:
        """Forget every lock in a forked process, which holds none of its parent's locks."""
        self._mutex = threading.Lock()
        for file in self._files.values():
            file.close()
        self._threads.clear()
        self._files.clear()
        self._released.clear()

    def _drop_released(self) -> None:
        while self._released:
            with self._exclusive():
                if not self._released:
                    return
                path, slot, claim = self._released[0]
                file = self._file(path)
                file.drop(slot, claim)
                if file.close_if_unused():
                    self._files.pop(path, None)
                self._released.popleft()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._threads.add(threading.get_ident())
        try:
            with self._mutex:
                yield
        finally:
            self._threads.discard(threading.get_ident())

    def _file(self, path: str) -> _LockFile:
        return self._files.setdefault(path, _LockFile(path))


def _runs_event_loop() -> bool:
    """Whether this thread runs an event loop; does not import asyncio, which is loaded if one runs."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


_registry = _Registry()
run_in_children(_registry.reset_in_child)
