"""Locks of whole turns: advisory locks of one connection that only they use.

A turn lasts as long as a model needs to answer, so its lock must not occupy a connection of the pool. The server
releases the locks of a connection when the process ends, even by kill -9. If the connection is lost, the locks are
taken again on a new one as far as they are free.
"""

import hashlib
import threading
import time
from contextlib import suppress

import psycopg

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.storage.forks import is_of_parent
from memoranda.storage.postgres.connection import RawConnection
from memoranda.storage.postgres.pool import ServerPool

_FIRST_PAUSE, _MAX_PAUSE = 0.002, 0.1


class TurnLock:
    """A lock that is held until `release`, or until this object is dropped."""

    def __init__(self, locks: "TurnLocks", key: int) -> None:
        self._locks: TurnLocks | None = locks
        self._key = key

    def release(self) -> None:
        locks, self._locks = self._locks, None
        if locks is not None:
            locks.release(self._key)

    __del__ = release


class TurnLocks:
    """The turns that this process holds, over one connection that is opened with the first."""

    def __init__(self, pool: ServerPool) -> None:
        self._pool = pool
        self._connection: RawConnection | None = None
        self._using = threading.RLock()
        self._changed = threading.Condition()
        self._held: set[int] = set()

    def acquire(self, name: str, timeout: float) -> TurnLock:
        """Raises LockTimeoutError when another holder keeps the lock for more than `timeout` seconds."""
        digest = hashlib.blake2b(f"{self._pool.address.schema} {name}".encode("utf-8", "surrogatepass"), digest_size=8)
        key = int.from_bytes(digest.digest(), signed=True)
        deadline = time.monotonic() + timeout
        self._claim(key, deadline)
        pause = _FIRST_PAUSE
        try:
            while not self._lock_on_server(key):
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise LockTimeoutError(f"Another process holds the turn of {name!r}.")
                time.sleep(min(pause, remaining))
                pause = min(pause * 2, _MAX_PAUSE)
        except BaseException:
            self._unclaim(key)
            raise
        return TurnLock(self, key)

    def release(self, key: int) -> None:
        if is_of_parent(self._pool.opened_in):
            return
        try:
            with self._using, suppress(psycopg.Error):
                # A lost connection has released its locks already.
                if self._connection is not None and not self._connection.closed:
                    self._connection.execute("SELECT pg_advisory_unlock($1)", [key])
        finally:
            self._unclaim(key)

    def close(self) -> None:
        """Release all locks."""
        with self._using:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _claim(self, key: int, deadline: float) -> None:
        """Wait for other threads of this process, whose lock the server would take for ours."""
        with self._changed:
            while key in self._held:
                if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    raise LockTimeoutError("Another thread of this process holds the turn.")
            self._held.add(key)

    def _unclaim(self, key: int) -> None:
        with self._changed:
            self._held.discard(key)
            self._changed.notify_all()

    def _lock_on_server(self, key: int) -> bool:
        with self._using:
            try:
                return self._try_lock(key)
            except psycopg.OperationalError:
                self._replace_connection(key)
                return self._try_lock(key)

    def _try_lock(self, key: int) -> bool:
        if self._connection is None:
            self._connection = self._pool.connect(self._pool.address.direct)
        (locked,) = self._connection.execute("SELECT pg_try_advisory_lock($1)", [key]).fetchone() or (False,)
        return bool(locked)

    def _replace_connection(self, wanted: int) -> None:
        """Open a connection for one that was lost, and lock again what this process holds."""
        with suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.close()
        self._connection = None
        with self._changed:
            held = self._held - {wanted}
        for key in held:
            with suppress(StorageError):
                self._try_lock(key)
