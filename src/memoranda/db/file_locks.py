"""Opens a database that others may be using, and refuses one on a file system without byte locks.

By these locks the processes that use a database exclude each other. Without them SQLite reports a database that another
process has locked, or a disk error, so the reason must be found out.
"""

import errno
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from memoranda.db.writer_turns import pause
from memoranda.errors import CorruptStoreError, LockTimeoutError, NewerStoreError, NoLocksError, StorageError
from memoranda.support.durable_files import PRIVATE_FILE

if sys.platform != "win32":
    import fcntl

_Opened = TypeVar("_Opened")
_HELD_BY_ANOTHER = (errno.EAGAIN, errno.EACCES)


def open_with_retries(open_once: Callable[[], _Opened], path: Path, wait: float) -> _Opened:
    """Open a database; retry for `wait` seconds, because SQLite does not always wait for another process.

    That one may be creating or closing the file.
    """
    deadline, tries = time.monotonic() + wait, 0
    while True:
        try:
            return open_once()
        except (CorruptStoreError, NewerStoreError):
            raise
        except StorageError as error:
            tries += 1
            if tries == 1:
                refuse_without_locks(path)
            if not isinstance(error, LockTimeoutError) or time.monotonic() >= deadline:
                raise
            pause()


def refuse_without_locks(path: Path) -> None:
    """Raise NoLocksError if the directory of a database is on a file system without byte locks.

    Tried with another file: closing a descriptor of the database would drop the locks that this process holds on it.
    """
    if sys.platform == "win32":
        return
    probe = f"{path}-locks"
    try:
        descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError:
        # The directory cannot be written, which is not about locks.
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            return
        raise NoLocksError(
            f"{path} is on a file system without byte locks ({error.strerror}). Two processes could damage it: it "
            "is not opened, and nothing was changed. Move the home to a disk that has locks, or mount this one with "
            "them; NFS needs its lock service for that."
        ) from error
    finally:
        os.close(descriptor)
        # Another process may try it at the same time.
        with suppress(FileNotFoundError):
            os.unlink(probe)
