"""Maps SQLite's errors to Memoranda's, which say what to do.

A file system without byte locks is refused: by these locks the processes that use a database exclude each other.
Without them SQLite reports a database that another process has locked, or a disk error, so the reason is looked for.
"""

import os
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path

from memoranda.errors import CorruptStoreError, LockTimeoutError, NoLocksError, SessionError, StorageError
from memoranda.support.durable_files import PRIVATE_FILE

if sys.platform != "win32":
    import fcntl

_CONTENTION = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_contention(error: sqlite3.Error) -> bool:
    """Whether an error says that another process holds a lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _CONTENTION


def storage_error(error: sqlite3.Error, path: Path, wait: float) -> StorageError:
    """The error of Memoranda for one of SQLite's; `wait` is how many seconds the caller tried."""
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    if (is_contention(error) or code == sqlite3.SQLITE_IOERR) and (refusal := missing_locks(path)):
        return refusal
    if is_contention(error):
        return LockTimeoutError(f"Another process has kept {path} locked for {wait:g} s. Nothing was written.")
    if code in _DAMAGE:
        return damage_error(path, str(error))
    if code == sqlite3.SQLITE_FULL:
        return StorageError(f"The disk is full: nothing was written to {path}.")
    if extended == sqlite3.SQLITE_READONLY_DBMOVED:
        return StorageError(f"{path} was moved or replaced while it was open. Nothing was written; open it again.")
    return StorageError(f"{path} cannot be used: {error}.")


def damage_error(path: Path, reason: str) -> CorruptStoreError:
    return CorruptStoreError(
        f"{path} is damaged or not a database ({reason}). It was not changed. "
        "'memoranda doctor' says how to save its content."
    )


def missing_locks(path: Path) -> NoLocksError | None:
    """The error for a database in a directory whose file system has no byte locks; None if it has.

    Tried with a new file, which no other process can have locked: closing a descriptor of the database would drop the
    locks that this process holds on it.
    """
    if sys.platform == "win32":
        return None
    probe = f"{path}-locks"
    try:
        with suppress(FileNotFoundError):
            # Left by a process that was killed, or in use by one that tries the same: it keeps its descriptor.
            os.unlink(probe)
        descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError:
        # The directory cannot be written, or another process was faster, which is not about locks.
        return None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    except OSError as error:
        return NoLocksError(
            f"{path} is on a file system without byte locks ({error.strerror}). Two processes could damage it, so it "
            "is not used, and nothing was changed. Move the home to a disk that has locks, or mount this one with "
            "them; NFS needs its lock service for that."
        )
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(probe)
    return None


def is_disk_full(error: StorageError) -> bool:
    """Whether an error of `storage_error` says that the disk is full."""
    return getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def encoding_error(error: UnicodeEncodeError) -> SessionError:
    """The error for a text that is not valid Unicode."""
    return SessionError(f"{error.object[:60]!r} contains an unpaired surrogate, which no database can store.")
