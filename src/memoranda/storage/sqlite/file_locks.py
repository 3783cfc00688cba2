"""Refuses a database on a file system without byte locks.

By these locks the processes that use a database exclude each other. Without them SQLite reports a database that another
process has locked, or a disk error, so the reason must be found out.
"""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from memoranda.errors import NoLocksError
from memoranda.support.durable_files import PRIVATE_FILE

if sys.platform != "win32":
    import fcntl

_HELD_BY_ANOTHER = (errno.EAGAIN, errno.EACCES)


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
