"""Checkpoints SQLite's write-ahead log in a background thread, so that no writer waits for it."""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.storage import fork_safety
from memoranda.storage.orphaned_wal import wal_path
from memoranda.storage.sqlite.writer_turns import pause

_log = logging.getLogger(__name__)

LARGE_LOG = 4_000_000
# What remains of the log after a checkpoint: more than a large log, so that the next writes need no new disk space.
LOG_KEPT = 2 * LARGE_LOG
_CHECK_EVERY = 64
# With less free space the log takes a quarter of it at most: a checkpoint needs space, too, before it can free the log.
_SMALL_SPACE = 16 * LARGE_LOG
_MIN_LOG = 64_000
# A writer may wait that long for a restart that itself waits for a reader; so it is tried often, not long.
_RESTART_TIMEOUT_MS = 5
_RESTART_TRIES = 20
_IDLE_SECONDS = 5.0


class WalCheckpointer:
    """Counts commits, and checks after the first and then every `_CHECK_EVERY` whether the log has become large.

    On a disk with little space, every commit is followed by a check, and the writer empties the log itself.
    The thread stays for the next checkpoint, because starting it costs as much as some appends, and ends after a few
    idle seconds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_file = wal_path(path)
        self._directory = os.path.dirname(self._log_file)
        self._until_check = 1
        self.after_checkpoint: Callable[[sqlite3.Connection], object] = lambda connection: None
        """Called in the thread of the checkpoint with its connection."""
        self._worker: _Worker | None = None

    def note_commit(self, connect: Callable[[], sqlite3.Connection]) -> bool:
        """Count a commit; `connect` opens a connection for the checkpoint. True: empty the log now, space is scarce."""
        self._until_check -= 1
        if self._until_check > 0:
            return False
        self._until_check = _CHECK_EVERY
        try:
            size = os.stat(self._log_file).st_size
            free = _free_space(self._directory)
        except FileNotFoundError:
            # Without a log there is nothing to checkpoint.
            return False
        if free < _SMALL_SPACE:
            self._until_check = 1
            return size > max(_MIN_LOG, min(free // 4, LARGE_LOG))
        if size > LARGE_LOG and (self._worker is None or not self._worker.request()):
            self._worker = _Worker(self._path, connect, self.after_checkpoint)
            self._worker.request()
        return False

    def close(self) -> None:
        """Wait until a running checkpoint has ended."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def reset_in_child(self) -> None:
        """Forget the thread, which exists only in the parent."""
        self._worker = None


def _free_space(directory: str) -> int:
    if not hasattr(os, "statvfs"):
        return _SMALL_SPACE
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


class _Worker:
    """A thread that checkpoints on request until nothing has been requested for a while."""

    def __init__(
        self,
        path: Path,
        connect: Callable[[], sqlite3.Connection],
        after_checkpoint: Callable[[sqlite3.Connection], object],
    ) -> None:
        self._after_checkpoint = after_checkpoint
        self._path = path
        self._connect = connect
        self._requests = threading.Condition()
        self._requested = False
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="memoranda-checkpoint", daemon=True)
        self._thread.start()

    def request(self) -> bool:
        """Ask for a checkpoint; False if the thread has ended."""
        with self._requests:
            self._requested = True
            self._requests.notify()
            return not self._ended

    def stop(self) -> None:
        with self._requests:
            self._ended = True
            self._requests.notify()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while self._wait():
            try:
                with fork_safety.gate, closing(self._connect()) as connection:
                    self._checkpoint(connection)
            except (sqlite3.Error, StorageError) as error:
                _log.warning("The log of %s could not be checkpointed: %s. It will be tried again.", self._path, error)

    def _wait(self) -> bool:
        """Wait for a request; False if there is none for a while, or if the thread must stop."""
        with self._requests:
            if not self._requested and not self._ended:
                self._requests.wait(_IDLE_SECONDS)
            self._ended = self._ended or not self._requested
            self._requested = False
            return not self._ended

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Checkpoint most of the log while others write; then the rest, so that the log restarts from its beginning.

        Without the second step, a process that writes all the time would make it grow without limit.
        """
        connection.execute("PRAGMA busy_timeout=0")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout={_RESTART_TIMEOUT_MS}")
        for _ in range(_RESTART_TRIES):
            ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            if not busy:
                break
            pause()
        self._after_checkpoint(connection)
