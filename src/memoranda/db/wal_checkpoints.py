"""Copies the write-ahead log back, in a thread of its own, so that no writer pays for it now and then."""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from memoranda.db import fork_safety

_log = logging.getLogger(__name__)

LARGE_LOG = 4_000_000
_CHECK_EVERY = 64
_MOMENT_MS = 5


class WalCheckpointer:
    """Counts commits, and looks now and then whether the log of a database has become large."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commits = 0
        self._thread: threading.Thread | None = None

    def note_commit(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """One more; `connect` gives a connection for copying."""
        self._commits += 1
        if self._commits % _CHECK_EVERY or (self._thread is not None and self._thread.is_alive()):
            return
        # Without a log there is nothing to copy back.
        with suppress(FileNotFoundError):
            if os.stat(f"{self._path}-wal").st_size > LARGE_LOG:
                self._thread = threading.Thread(
                    target=self._copy_back, args=(connect,), name="memoranda-checkpoint", daemon=True
                )
                self._thread.start()

    def wait(self) -> None:
        """Until nothing is being copied any more."""
        if self._thread is not None:
            self._thread.join()

    def reset_in_child(self) -> None:
        self._thread = None

    def _copy_back(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """Copy nearly all of the log while others write; then the rest, which takes a moment, so that it begins anew.

        Without the second step somebody who writes all the time would make it grow for ever.
        """
        try:
            with fork_safety.gate, closing(connect()) as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                connection.execute(f"PRAGMA busy_timeout={_MOMENT_MS}")
                connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        except sqlite3.Error as error:
            _log.warning("The log of %s could not be copied back: %s. It will be tried again.", self._path, error)
