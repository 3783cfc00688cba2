"""Opens a SQLite file with a write-ahead log, where the file system supports that, and checkpoints the log.

A background thread checkpoints, so that no writer waits for it.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.storage.forks import forked_error, is_inherited
from memoranda.storage.orphaned_wal import refuse_missing_main_file, wal_path
from memoranda.storage.sqlite.forked_connection import Connection
from memoranda.storage.sqlite.writer_turns import busy_timeout, pause, retry

_Opened = TypeVar("_Opened")
_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS = 1000
_EMPTY_TIMEOUT_MS = 20
_NO_SHARED_MEMORY = {
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMLOCK,
}
# Paths for which the warning was logged.
_warned: set[Path] = set()

LARGE_LOG = 4_000_000
# What remains of the log after a checkpoint: more than a large log, so that the next writes need no new disk space.
LOG_KEPT = 2 * LARGE_LOG
_LOG_HEADER, _FRAME_HEADER = 32, 24
_CHECK_EVERY = 64
# With less free space the log takes a quarter of it at most: a checkpoint needs space, too, before it can free the log.
_SMALL_SPACE = 16 * LARGE_LOG
_MIN_LOG = 64_000
# A writer may wait that long for a restart that itself waits for a reader; so it is tried often, not long.
_RESTART_TIMEOUT_MS = 5
_RESTART_TRIES = 20
_IDLE_SECONDS = 5.0


def open_with_retries(open_once: Callable[[], _Opened], wait: float) -> _Opened:
    """Open a database; retry for `wait` seconds, because SQLite does not always wait for another process.

    That one may be creating or closing the file.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            return open_once()
        except LockTimeoutError:
            if time.monotonic() >= deadline:
                raise
            pause()


def connect(path: Path, options: str) -> sqlite3.Connection:
    """Open an existing file; `options` are those of SQLite's URI."""
    # Checked every time: SQLite would delete the log of a file that has become empty.
    refuse_missing_main_file(path)
    if is_inherited(path):
        raise forked_error(path)
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}",
        uri=True,
        timeout=CONNECT_TIMEOUT_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=Connection,
    )
    connection.execute("PRAGMA foreign_keys=1")
    return connection


def prepare_connection(
    connect: Callable[[], sqlite3.Connection], prepare: Callable[[sqlite3.Connection], sqlite3.Connection]
) -> sqlite3.Connection:
    """Connect and prepare; a file system without shared memory needs a connection that locks the file exclusively.

    SQLite only notices with a read that it cannot map the shared memory of a log, and the connection is useless then.
    """
    try:
        return prepare(connect())
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode not in _NO_SHARED_MEMORY:
            raise
    connection = connect()
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    return prepare(connection)


def choose_journal(connection: sqlite3.Connection, path: Path, deadline: float) -> str:
    """Enable the write-ahead log if that is possible; return the journal mode that is in use."""

    def ask(statement: str) -> str:
        return str(retry(connection, statement, deadline).fetchone()[0])

    if ask("PRAGMA locking_mode") == "exclusive":
        # There is no shared memory. This copies what a log contains into the file.
        mode = ask("PRAGMA journal_mode=DELETE")
        ask("PRAGMA locking_mode=NORMAL")
    else:
        mode = _ask_for_log(ask, path)
    # This read releases an exclusive lock, and fails if the shared memory of a log cannot be mapped.
    ask("SELECT count(*) FROM sqlite_master")
    if mode != "wal" and path not in _warned:
        _warned.add(path)
        _log.warning(
            "%s is on a file system without shared memory (a network drive?), so SQLite's write-ahead log "
            "cannot be used. Everything is still durable, but readers and writers wait for each other.", path,
        )  # fmt: skip
    return mode


def _ask_for_log(ask: Callable[[str], str], path: Path) -> str:
    mode = ask("PRAGMA journal_mode")
    # An attempt in a file that other processes use would make their reads fail until it is given up.
    if mode == "wal" or (ask("SELECT count(*) FROM sqlite_master") != "0" and not supports_log(path)):
        return mode
    try:
        return ask("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
            raise
        return ask("PRAGMA journal_mode=DELETE")


def empty_log(connection: sqlite3.Connection) -> bool:
    """Checkpoint the log and truncate it; False while a reader or another checkpoint needs it."""
    with busy_timeout(connection, _EMPTY_TIMEOUT_MS):
        ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not busy


def free_log_space(connection: sqlite3.Connection, error: sqlite3.Error) -> None:
    """Empty the log if an error says that the disk is full, which frees its space for the next try."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def supports_log(path: Path) -> bool:
    """Whether a log works beside a file, tried with another file."""
    probe = Path(f"{path}-probe")
    try:
        with closing(sqlite3.connect(probe, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return str(mode) == "wal"
    except sqlite3.Error:
        return False
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{probe}{ending}").unlink(missing_ok=True)


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
            is_large = size > LARGE_LOG and _is_filled(self._log_file, LARGE_LOG)
        except OSError:
            # Without a log there is nothing to checkpoint; if it cannot be read now, a later commit tries again.
            return False
        if free < _SMALL_SPACE:
            self._until_check = 1
            return size > max(_MIN_LOG, min(free // 4, LARGE_LOG))
        if is_large and (self._worker is None or not self._worker.request()):
            self._worker = _Worker(self._path, connect, self.after_checkpoint)
            self._worker.request()
        return False

    def close(self) -> None:
        """Wait until a running checkpoint has ended."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


def _is_filled(log_file: Path, size: int) -> bool:
    """Whether the log has so many bytes since it restarted: its file also has what was in it before."""
    with open(log_file, "rb") as log:
        header = log.read(_LOG_HEADER)
        frame = int.from_bytes(header[8:12]) + _FRAME_HEADER
        log.seek(_LOG_HEADER + size // frame * frame)
        # A restart changes the salt, which is in the header of the log and in that of every page.
        return header[16:24] == log.read(_FRAME_HEADER)[8:16]


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
                with closing(self._connect()) as connection:
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
