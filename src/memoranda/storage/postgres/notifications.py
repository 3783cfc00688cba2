"""Tells the processes that use a record when one of them has committed: LISTEN and NOTIFY, with polling behind them.

An append sends no notification itself: that would make all commits of a database wait for each other. A thread sends
one for all appends of a moment. A notification can be missed, and processes that do not watch send none, so a watcher
is called at intervals as well.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

import psycopg

from memoranda.errors import StorageError
from memoranda.storage.postgres.connection import RawConnection
from memoranda.storage.postgres.pool import ServerPool

_log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
_GATHER_SECONDS = 0.02
# How long a close may wait for the thread that listens.
_CLOSE_SECONDS = 0.1


class Watch:
    """Calls `callback` when another process may have committed, until `close`; two daemon threads."""

    def __init__(self, pool: ServerPool, callback: Callable[[], object], poll_seconds: float = POLL_SECONDS) -> None:
        self._pool = pool
        self._callback = callback
        self._poll_seconds = poll_seconds
        self._channel = f"memoranda_{pool.address.schema}"
        self._own_name = secrets.token_hex(8)
        self._stopping = threading.Event()
        self._committed = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=f"memoranda-{name}", daemon=True)
            for name, target in (("listen", self._listen), ("notify", self._notify))
        ]
        for thread in self._threads:
            thread.start()

    def announce(self) -> None:
        """Notify the other processes of a commit, soon; returns at once."""
        if not self._committed.is_set():
            self._committed.set()

    def close(self) -> None:
        self._stopping.set()
        self._committed.set()
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                with closing(self._pool.connect(self._pool.address.direct)) as raw:
                    raw.execute(f"LISTEN {self._channel}")
                    self._wait_for_notifications(raw)
            except (StorageError, psycopg.Error) as error:
                # Polling continues, and the next attempt may succeed.
                _log.info("Notifications of %s are not received: %s", self._pool.address.location, error)
                self._stopping.wait(self._poll_seconds)
                self._call()

    def _wait_for_notifications(self, raw: RawConnection) -> None:
        due = time.monotonic() + self._poll_seconds
        while not self._stopping.is_set():
            names = {notification.payload for notification in raw.notifies(timeout=_CLOSE_SECONDS, stop_after=1)}
            if names - {self._own_name} or time.monotonic() >= due:
                self._call()
                due = time.monotonic() + self._poll_seconds

    def _call(self) -> None:
        if not self._stopping.is_set():
            self._callback()

    def _notify(self) -> None:
        while True:
            self._committed.wait()
            if self._stopping.wait(_GATHER_SECONDS):
                return
            self._committed.clear()
            # The others poll.
            with suppress(StorageError, psycopg.Error), closing(self._pool.connect(self._pool.address.direct)) as raw:
                self._send(raw)

    def _send(self, raw: RawConnection) -> None:
        """Send notifications over one connection as long as there are commits."""
        while not self._stopping.is_set():
            raw.execute("SELECT pg_notify($1, $2)", [self._channel, self._own_name])
            if not self._committed.wait(self._poll_seconds) or self._stopping.wait(_GATHER_SECONDS):
                return
            self._committed.clear()
