"""Being the only one who has a database, while its file is replaced.

Whoever has a database with a log open keeps two locks on it, reading or not: a shared one on a range of the file, and
one on a byte of the file beside it that holds the log's index. Which bytes these are belongs to SQLite's format. Taken
exclusively they show that nobody else is there, and keep others from opening it, whatever the file's content: SQLite
itself could not lock a file that it cannot read. Where there is no log, nobody keeps a lock, but SQLite refuses to
write through a file that was replaced. On Windows a file that is open cannot be replaced at all.
"""

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoranda.db import fork_safety
from memoranda.db.orphaned_wal import WAL_SUFFIX
from memoranda.db.sqlite import LONG_WAIT_MS, Database
from memoranda.errors import LockTimeoutError
from memoranda.support.durable_files import PRIVATE_FILE
from memoranda.support.processes import processes_that_opened

if sys.platform != "win32":
    import fcntl

_SHARED_RANGE = (0x40000002, 510)
_LOG_INDEX_BYTE = (128, 1)
_PATIENCE = 1.0
_PAUSE = 0.02
# Longer than anybody waits for a file before opening it again.
_AFTERWARDS = LONG_WAIT_MS / 1000 + 0.1


@contextmanager
def exclusive_access(path: Path) -> Iterator[int | None]:
    """The locked file's descriptor, None on Windows. It is made if it is missing; no other of it may be closed.

    Others may have opened the old file just before it is replaced, and wait for it. If the lock fell at once, they
    would go on with the old file and the new one's log; so it is held until they have given up and opened the new one.
    """
    if _is_open_here(path):
        raise LockTimeoutError(f"{path} is open in this process. Close it first; nothing was changed.")
    if sys.platform == "win32":
        yield None
        return
    was_there = path.exists()
    with ExitStack() as held:
        file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        held.callback(os.close, file)
        try:
            _lock(file, path, *_SHARED_RANGE)
            if os.path.exists(index := f"{path}-shm"):
                damaged_copy_path = os.open(index, os.O_RDWR)
                held.callback(os.close, damaged_copy_path)
                _lock(damaged_copy_path, path, *_LOG_INDEX_BYTE)
            if (others := _holders(path)) or _is_replaced(path, file):
                raise _in_use(path, others)
            yield file
        except BaseException:
            if not was_there and not _is_replaced(path, file):
                path.unlink()
            raise
        if _is_replaced(path, file):
            time.sleep(_AFTERWARDS)


def _is_replaced(path: Path, file: int) -> bool:
    return not os.path.samestat(os.stat(path), os.fstat(file))


def _is_open_here(path: Path) -> bool:
    """Locks do not keep a process from itself, and it would lose its own when the descriptor is closed."""
    place = os.path.realpath(path)
    return any(
        isinstance(each, Database) and not each.closed and os.path.realpath(each.path) == place
        for each in fork_safety.watched()
    )


def _lock(descriptor: int, path: Path, start: int, length: int) -> None:
    if sys.platform == "win32":
        return
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            if time.monotonic() >= deadline:
                raise _in_use(path, _holders(path)) from error
        time.sleep(_PAUSE)


def _holders(path: Path) -> list[int]:
    """A lock can be lost, when a process closes the file apart from SQLite; that it has the file open cannot."""
    return processes_that_opened(Path(f"{path}{ending}") for ending in ("", WAL_SUFFIX, "-shm"))


def _in_use(path: Path, processes: list[int]) -> LockTimeoutError:
    who = f"process {', '.join(map(str, processes))}" if processes else "another process"
    return LockTimeoutError(
        f"{path} is open in {who}, which would go on writing to the old file. Nothing was changed. Stop every program "
        "that uses this home (agents, MCP servers, 'memoranda chat'), then run 'memoranda doctor --fix' again."
    )
