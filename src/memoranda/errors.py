"""The exceptions of Memoranda.

    MemorandaError
    ├── HomeError            a home cannot be used
    │   └── ForeignHomeError another program owns it
    ├── ProviderError        an external memory cannot be loaded or used
    │   ├── TemporaryProviderError  it may work later: no connection, too many requests, a fault of the service
    │   └── PermanentProviderError  repeating the request does not help: refused, not found, too large
    ├── AccessError          an API key, or what it is bound to, cannot be used
    ├── ConfigError          config.yaml, .env or an environment override is not usable
    ├── ModelError           a language model gave no usable answer
    │   ├── ModelAuthError        the key is missing, wrong or lacks permission
    │   ├── ModelQuotaError       the account has no credit left
    │   ├── ModelOverloadedError  too many requests, or the service is overloaded
    │   ├── ContextTooLongError   the conversation does not fit into the model's window
    │   ├── ModelUnreachableError no connection, or no answer within the deadline
    │   ├── ModelReplyError       the answer made no sense, broke off, or was refused as malformed
    │   └── BudgetSpentError      today's budget for background work is spent
    ├── BackupError          a backup cannot be written, read or restored
    ├── SyncError            a shared folder, or a bundle in it, cannot be used
    └── StorageError         a file could not be read, written or locked
        ├── ServiceError     a service on another machine cannot be reached, or gave no usable answer
        ├── LockTimeoutError another process holds the lock
        ├── MovedUserError   the user has moved to another server of the fleet
        ├── StoreUnavailableError the database server cannot be reached, or ended the connection
        ├── NoLocksError     the file system has no locks, so a database on it is not opened
        ├── CorruptStoreError the session store is damaged, or another program wrote it
        │   └── StoreMismatchError it is not the store that the home had: missing, emptied, replaced or older
        ├── ReplacedStoreError a database was deleted or replaced while it was open
        ├── NewerStoreError  the session store was written by a newer Memoranda
        └── SessionError     an unknown session, a title in use, a message in the wrong place
            ├── UnknownSessionError it does not exist, or is another user's
            ├── TakenSessionError its id is already in use
            ├── ContinuedError its conversation continues in another session
            ├── SessionChangedError it has newer messages than its writer has read
            ├── ItemConflictError an item has another version than the writer expects
            └── SessionBusyError    another turn of the conversation is in progress

Expected outcomes of a memory write (over budget, no match, blocked …) are values, not exceptions: see
`memoranda.memory.curated.operations`. Every message names what happened, to what, and what to do next.
"""


class MemorandaError(Exception):
    """The base of all errors that Memoranda reports."""


class HomeError(MemorandaError):
    """A home, profile or user scope cannot be used."""


class ForeignHomeError(HomeError):
    """The home belongs to another program and is never written."""


class BackupError(MemorandaError):
    """A backup cannot be written, read or restored; the home and the file are as they were."""


class SyncError(MemorandaError):
    """A shared folder, or a bundle in it, cannot be used; the home is as it was."""


class ConfigError(MemorandaError):
    """The configuration cannot be used; nothing is opened until it is fixed."""


class AccessError(MemorandaError):
    """An API key, or what it should be bound to, cannot be used."""


class ProviderError(MemorandaError):
    """An external memory provider cannot be found, loaded or used."""


class TemporaryProviderError(ProviderError):
    """A service cannot do something now; `retry_after` is how many seconds it asks to wait, if it says so.

    `status` is that of the HTTP answer, if there was one.
    """

    def __init__(self, message: str, retry_after: float | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.status = status


class PermanentProviderError(ProviderError):
    """A service refuses something for good: repeating the request does not help, changing it or the settings may.

    `status` is that of the HTTP answer, if there was one: a provider may know what a 404 or 409 means.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def concerns_service(self) -> bool:
        """Whether the service refuses everything until someone changes something, and not just this request."""
        return self.status is not None and (self.status < 400 or self.status in (401, 402, 403, 404, 405, 407, 410))


class ModelError(MemorandaError):
    """A language model gave no usable answer; the record is not affected."""


class ModelAuthError(ModelError):
    """The key is missing, wrong, or not allowed to use the model."""


class ModelQuotaError(ModelError):
    """The account has no credit or quota left; a retry does not help."""


class ModelOverloadedError(ModelError):
    """The service is overloaded or limits the rate, even after several retries."""


class ContextTooLongError(ModelError):
    """The conversation does not fit into the model's context window."""


class ModelUnreachableError(ModelError):
    """The service could not be reached, or did not answer within the deadline."""


class ModelReplyError(ModelError):
    """The service answered, but the answer cannot be used."""


class BudgetSpentError(ModelError):
    """Today's budget for background work is spent; it is available again tomorrow."""


class StorageError(MemorandaError):
    """A file could not be read, written or locked."""


class ServiceError(StorageError):
    """A service on another machine cannot be reached, or gave no usable answer; `status` is that of its answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class LockTimeoutError(StorageError):
    """Another process held the lock for longer than the timeout."""


class MovedUserError(StorageError):
    """The user has moved to another server of the fleet; nothing was written. `memory.for_user` finds the new one."""


class StoreUnavailableError(StorageError):
    """The database server cannot be reached, or ended the connection; a later call may succeed."""


class NoLocksError(StorageError):
    """The file system has no byte locks, without which several processes would damage a database."""


class CorruptStoreError(StorageError):
    """A database is damaged, or Memoranda did not write it; it is never overwritten."""


class StoreMismatchError(CorruptStoreError):
    """The session store of a home is not the one that its marker describes; nothing was written.

    `reason` is `missing` (or empty), `unrecognised` (its first page is damaged), `swapped` or `older`.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class ReplacedStoreError(StorageError):
    """A database was deleted or replaced while it was open; nothing was written."""


class NewerStoreError(StorageError):
    """A newer version of Memoranda wrote the database; it is not changed."""


class SessionError(StorageError, ValueError):
    """The session store cannot do what was asked: an unknown session, a title in use, a message in the wrong place."""


class UnknownSessionError(SessionError):
    """There is no session with this id, or it belongs to another user."""


class TakenSessionError(SessionError):
    """The id of a new session belongs to a session of another user."""


class ContinuedError(SessionError):
    """The session was compressed, and its conversation continues in `successor`."""

    def __init__(self, session_id: str, successor: str) -> None:
        super().__init__(f"Session {session_id!r} was compressed; its conversation continues in {successor!r}.")
        self.successor = successor


class SessionChangedError(SessionError):
    """The session has newer messages than the writer has read; nothing was written. Read it again."""


class SessionBusyError(SessionError):
    """Another turn of the conversation is in progress, and did not end in time; nothing was recorded."""


SessionBusy = SessionBusyError  # The name before all errors ended in "Error".


class ItemConflictError(SessionError):
    """An item has another version than the writer expects; nothing was written. `current` is 0 if there is no item."""

    def __init__(self, message: str, current: int) -> None:
        super().__init__(message)
        self.current = current
