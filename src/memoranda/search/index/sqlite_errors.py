"""Decides from an SQLite error whether the index file is damaged or only cannot be used now."""

import sqlite3

_DAMAGED = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
    # Our statements are correct, so a table or column that they do not find is lost.
    sqlite3.SQLITE_ERROR,
}
_DAMAGED_READING = {
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
    sqlite3.SQLITE_READONLY_DBMOVED,
    # It has a log, and this file system has no shared memory for one; the next generation has none.
    sqlite3.SQLITE_IOERR_SHMMAP,
}
_DESCRIPTIONS = {
    sqlite3.SQLITE_BUSY: "another process is using it",
    sqlite3.SQLITE_LOCKED: "another process is using it",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "it cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
}


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file must be deleted. An error without a code comes from our code, or from invalid UTF-8."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return not isinstance(error, sqlite3.ProgrammingError)
    return code & 0xFF in _DAMAGED or code in _DAMAGED_READING


def describe_error(error: sqlite3.Error | OSError) -> str:
    """Why a file cannot be used now, in words for the user."""
    if isinstance(error, OSError):
        return f"{error.strerror or error}"
    code = getattr(error, "sqlite_errorcode", 0)
    return _DESCRIPTIONS.get(code & 0xFF, str(error))
