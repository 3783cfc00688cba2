"""Maps psycopg's errors to Memoranda's, which say what to do and never contain a password."""

import psycopg
from psycopg import errors as pg

from memoranda.errors import LockTimeoutError, MovedUserError, StorageError, StoreUnavailableError

_REFUSED_LOGIN = (pg.InvalidPassword, pg.InvalidAuthorizationSpecification)
_SHUTTING_DOWN = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.IdleSessionTimeout)
_TRANSIENT = (pg.DeadlockDetected, pg.SerializationFailure)
MOVED = "MM001"
"""The SQLSTATE of an error that our own triggers raise: the user has moved to another server."""
_FULL = (pg.DiskFull, pg.OutOfMemory, pg.TooManyConnections, pg.ConfigurationLimitExceeded)


def connection_was_lost(error: BaseException, connection: psycopg.Connection[object] | None = None) -> bool:
    """Whether an error means that the connection is of no use any more, and not that the statement was wrong."""
    if isinstance(error, _SHUTTING_DOWN):
        return True
    if connection is not None and connection.broken:
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def is_transient(error: BaseException | None) -> bool:
    """Whether the server rolled a transaction back only because of others that ran at the same time."""
    return isinstance(error, _TRANSIENT)


class _RolledBackError(StoreUnavailableError):
    """The connection was lost before anything was committed."""


def was_rolled_back(error: StorageError) -> bool:
    """Whether an error certainly left nothing behind and may not occur again."""
    return isinstance(error, _RolledBackError) or is_transient(error.__cause__)


def storage_error(error: psycopg.Error, location: str, wait: float) -> StorageError:
    """The error of Memoranda for one of psycopg's; `wait` is how many seconds the caller tried."""
    reason = first_line(error)
    if isinstance(error, (pg.LockNotAvailable, *_TRANSIENT)):
        return LockTimeoutError(
            f"Another writer has kept a lock in {location} for {wait:g} s, or both waited for each other. "
            "Nothing was written; try again."
        )
    if error.sqlstate == MOVED:
        return MovedUserError(f"{location} no longer has this user: {reason}. Nothing was written.")
    if isinstance(error, _REFUSED_LOGIN):
        return StorageError(f"{location} refuses the login: {reason}. Check user and password in store.url.")
    if connection_was_lost(error):
        return _RolledBackError(_cannot_be_reached(location, reason))
    if isinstance(error, pg.InsufficientPrivilege):
        return StorageError(f"{location} does not permit this: {reason}. Nothing was written.")
    if isinstance(error, _FULL):
        return StorageError(f"{location} has no room left: {reason}. Nothing was written.")
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return StorageError(f"{location} is a read-only server, such as a standby. Use the address of the primary.")
    return StorageError(f"{location} cannot be used: {reason}.")


def unavailable_error(location: str, reason: str) -> StoreUnavailableError:
    return StoreUnavailableError(_cannot_be_reached(location, reason))


def _cannot_be_reached(location: str, reason: str) -> str:
    return (
        f"The database at {location} cannot be reached: {reason}. Nothing was written. "
        "Start the server or correct store.url; then try again."
    )


def rolled_back_error(location: str) -> StoreUnavailableError:
    """The error after a connection was lost before its transaction was committed."""
    return _RolledBackError(
        f"The connection to {location} was lost, and the server rolled the change back. Nothing was written; try again."
    )


def unknown_outcome_error(location: str) -> StoreUnavailableError:
    """The error after a connection was lost while a transaction was being committed."""
    return StoreUnavailableError(
        f"The connection to {location} was lost during a commit, so it is not known whether the change was saved. "
        "Read it back before you repeat it."
    )


def first_line(error: BaseException) -> str:
    """What an error says, without hints and without the final period."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
