"""Exclusive access to a database file while it is replaced.

Every process that has a database with a write-ahead log open holds two locks, whether it reads or not: a shared one on
a range of the file, and one on a byte of the `-shm` file. SQLite's format defines which bytes these are. Taking both
locks exclusively proves that no other process has the file open, and prevents others from opening it, whatever its
content; SQLite itself cannot lock a file that it cannot read. Without a log no process holds a lock, but SQLite refuses
to write to a file that was replaced. On Windows an open file cannot be replaced.
"""

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoranda.errors import LockTimeoutError
from memoranda.storage.orphaned_wal import WAL_SUFFIX
from memoranda.storage.sqlite.database import is_open_here
from memoranda.storage.sqlite.error_mapping import missing_locks
from memoranda.storage.sqlite.write_ahead_log import CONNECT_TIMEOUT_MS
from memoranda.support.durable_files import PRIVATE_FILE
from memoranda.support.processes import processes_that_opened

if sys.platform != "win32":
    import fcntl

_SHARED_RANGE = (0x40000002, 510)
_LOG_INDEX_BYTE = (128, 1)
_LOCK_TIMEOUT = 1.0
_PAUSE = 0.02
# Longer than any process waits for the file before it opens it again.
_HOLD_AFTER_REPLACING = CONNECT_TIMEOUT_MS / 1000 + 0.1


@contextmanager
def exclusive_access(path: Path) -> Iterator[int | None]:
    """Lock a file against all other processes and yield its descriptor (None on Windows); creates a missing file.

    The caller must not close another descriptor of the file, because that would drop the locks. Another process may
    have opened the old file just before it was replaced and wait for the lock. It would then use the old file with the
    log of the new one; so the lock stays until that process has given up and opened the new file.
    """
    if is_open_here(path):
        raise LockTimeoutError(f"{path} is open in this process. Close it first; nothing was changed.")
    if sys.platform == "win32":
        yield None
        return
    existed = path.exists()
    with ExitStack() as resources:
        file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        resources.callback(os.close, file)
        try:
            _lock(file, path, *_SHARED_RANGE)
            if os.path.exists(index := f"{path}-shm"):
                index_file = os.open(index, os.O_RDWR)
                resources.callback(os.close, index_file)
                _lock(index_file, path, *_LOG_INDEX_BYTE)
            if (others := _holders(path)) or _is_replaced(path, file):
                raise _in_use(path, others)
            yield file
        except BaseException:
            if not existed and not _is_replaced(path, file):
                path.unlink()
            raise
        if _is_replaced(path, file):
            time.sleep(_HOLD_AFTER_REPLACING)


def _is_replaced(path: Path, file: int) -> bool:
    return not os.path.samestat(os.stat(path), os.fstat(file))


def _lock(descriptor: int, path: Path, start: int, length: int) -> None:
    if sys.platform == "win32":
        return
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
            return
        except OSError as error:
            if refusal := missing_locks(path):
                raise refusal from error
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            if time.monotonic() >= deadline:
                raise _in_use(path, _holders(path)) from error
        time.sleep(_PAUSE)


def _holders(path: Path) -> list[int]:
    """The processes that have the file open, including those that lost their lock by closing a second descriptor."""
    return processes_that_opened(Path(f"{path}{suffix}") for suffix in ("", WAL_SUFFIX, "-shm"))


def _in_use(path: Path, processes: list[int]) -> LockTimeoutError:
    holders = f"process {', '.join(map(str, processes))}" if processes else "another process"
    return LockTimeoutError(
        f"{path} is open in {holders}, which would keep writing to the old file. Nothing was changed. Stop every "
        "program that uses this home (agents, MCP servers, 'memoranda chat'), then run 'memoranda doctor --fix' again."
    )
