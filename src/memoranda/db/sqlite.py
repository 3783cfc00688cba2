"""One SQLite file, shared by many threads and processes.

Writing is one short `BEGIN IMMEDIATE` transaction at a time, retried with jitter for a bounded while; what it commits
has reached the disk. Reading uses connections of its own and sees one consistent state. The write-ahead log is copied
back by a thread of its own, so that no writer pays for it now and then. The file is never opened except through
SQLite: closing any other descriptor would drop the locks that this process holds on it.
"""

import logging
import os
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from memoranda.db import forks
from memoranda.db.faults import CONTENTION, explained, unstorable
from memoranda.db.lost import identity, refuse_lost, refuse_replaced
from memoranda.errors import CorruptStoreError, LockTimeoutError, NewerStoreError, ReplacedStoreError, StorageError
from memoranda.support.files import PRIVATE_FILE, make_private_directory

_log = logging.getLogger(__name__)

_MOMENT_MS = 5
_SHORT_WAIT_MS = 20
LONG_WAIT_MS = 1000
_JITTER = (0.002, 0.030)
_IDLE_READERS = 4
_PAGE = 8192
_CHECK_LOG_EVERY = 64
_LARGE_LOG = 4_000_000

Connection = sqlite3.Connection


class Database:
    """An open file. `read_only` says that nothing can be written there, `journal` how SQLite keeps it safe."""

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        inspect: Callable[[Connection], None] = lambda connection: None,
        wait: float = 10.0,
        vfs: str = "",
    ) -> None:
        """Open the file, or make it. `inspect` may look at it first, and raise if it must not be used."""
        self.path = path
        self.read_only = False
        self.journal = ""
        self._application_id = application_id
        self._inspect = inspect
        self._wait = wait
        self._vfs = vfs
        self._lock = threading.Lock()
        self._nested = threading.local()
        self._writer: Connection | None = None
        self._readers: list[Connection] = []
        self._commits = 0
        self._writing_thread = 0
        self._checkpoint: threading.Thread | None = None
        self._reason = ""
        self._identity: tuple[int, int] | None = None
        self._file = str(path)
        self._closed = False
        self._open()
        forks.watch(self)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: all of it is durable when the block ends, none of it when the block raises."""
        if self.read_only:
            raise StorageError(f"{self.path} is open read-only. {self._reason}")
        deadline = time.monotonic() + self._wait
        # Waiting with a limit costs more than trying, and there is seldom anybody to wait for.
        if not self._lock.acquire(blocking=False) and not self._lock.acquire(timeout=self._wait):
            raise LockTimeoutError(f"Another thread has been writing {self.path} for {self._wait:g} s.")
        self._writing_thread = threading.get_ident()
        try:
            connection = self._writing_connection()
            try:
                _retry(connection, "BEGIN IMMEDIATE", deadline)
                yield connection
                refuse_replaced(self._file, self._identity)
                _retry(connection, "COMMIT", deadline)
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, ReplacedStoreError):
                    self._leave_file()
                if isinstance(error, UnicodeEncodeError):
                    raise unstorable(error) from error
                if isinstance(error, sqlite3.Error):
                    self._make_room(connection, error)
                    raise explained(error, self.path, self._wait) from error
                raise
        finally:
            self._writing_thread = 0
            self._lock.release()
        self._commits += 1
        if self._commits % _CHECK_LOG_EVERY == 0:
            self._copy_back_when_large()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view, which no writer waits for. Not for use inside `writing`, whose connection reads too."""
        if self._writing_thread == threading.get_ident():
            raise RuntimeError("A reader inside a write would wait for itself where there is no write-ahead log.")
        outer: Connection | None = getattr(self._nested, "connection", None)
        if outer is not None:
            # One view for everything that is read inside another reading.
            with self._translated():
                yield outer
            return
        with self._translated():
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                self._nested.connection = connection
                yield connection
            except BaseException:
                connection.close()
                raise
            finally:
                self._nested.connection = None
            connection.execute("ROLLBACK")
        if len(self._readers) < _IDLE_READERS:
            self._readers.append(connection)
        else:
            connection.close()

    def shrink_log(self) -> bool:
        """Copy the log back and empty it, so that deleted text is in no file; False while somebody is reading."""
        if self.journal != "wal" or self.read_only:
            return True
        with self._lock, self._translated():
            ((busy, _, _),) = self._writing_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return not busy

    def check(self) -> list[str]:
        """What is damaged, in SQLite's words; empty when the file is whole."""
        try:
            with self.reading() as connection:
                found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)")]
        except CorruptStoreError as error:
            return [str(error.__cause__ or error)]
        return [] if found == ["ok"] else found

    def vacuum(self) -> None:
        """Rewrite the file without the room that deleted rows left."""
        with self._lock, self._translated():
            self._writing_connection().execute("VACUUM")

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Close every connection; the last one of all processes copies the log back."""
        if self._checkpoint is not None:
            self._checkpoint.join()
        self._closed = True
        with self._lock:
            self._leave_file()

    def _open(self) -> None:
        try:
            if not self.path.exists():
                refuse_lost(self.path)
                self._create()
            self._writer = self._prepare_patiently()
            self._identity = identity(self._file)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be made: {error.strerror}.") from error
        except StorageError as error:
            if isinstance(error, CorruptStoreError | LockTimeoutError | NewerStoreError):
                raise
            self._open_read_only(error)

    def _prepare_patiently(self) -> Connection:
        """Somebody may be making, closing or recovering the file at this moment, and SQLite does not always wait."""
        deadline = time.monotonic() + self._wait
        while True:
            try:
                with self._translated():
                    return self._prepare(self._connect("rw"))
            except LockTimeoutError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(random.uniform(*_JITTER))

    def _create(self) -> None:
        make_private_directory(self.path.parent)
        with suppress(FileExistsError):
            # Made by hand so that it is private; SQLite gives its other files the same mode.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))

    def _prepare(self, connection: Connection) -> Connection:
        try:
            connection.execute(f"PRAGMA busy_timeout={LONG_WAIT_MS}")
            (owner,) = connection.execute("PRAGMA application_id").fetchone()
            if owner != self._application_id:
                # Counts only for a file that is empty; messages leave less room unused on larger pages.
                connection.execute(f"PRAGMA page_size={_PAGE}")
                self._claim(connection)
            # Before anything is changed: a file that must not be touched stays as it is to the last byte.
            self._inspect(connection)
            self.journal = self._choose_journal(connection)
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("PRAGMA secure_delete=1")
            connection.execute(f"PRAGMA journal_size_limit={_LARGE_LOG}")
            connection.execute(f"PRAGMA synchronous={'FULL' if self.journal == 'wal' else 'EXTRA'}")
            if sys.platform == "darwin":
                connection.execute("PRAGMA fullfsync=1")
            connection.execute(f"PRAGMA busy_timeout={_SHORT_WAIT_MS}")
            return connection
        except BaseException:
            connection.close()
            raise

    def _claim(self, connection: Connection) -> None:
        """Sign an empty file as ours, before anything else is in it; a file with other content is somebody else's."""
        deadline = time.monotonic() + self._wait
        _retry(connection, "BEGIN IMMEDIATE", deadline)
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if owner != self._application_id and (tables or owner):
            connection.execute("ROLLBACK")
            raise CorruptStoreError(f"{self.path} was not written by Memoranda. It is left as it is.")
        connection.execute(f"PRAGMA application_id={self._application_id}")
        connection.execute("COMMIT")

    def _choose_journal(self, connection: Connection) -> str:
        deadline = time.monotonic() + self._wait

        def ask(question: str) -> str:
            return str(_retry(connection, question, deadline).fetchone()[0])

        mode = ask("PRAGMA journal_mode")
        if mode == "wal":
            return mode
        try:
            mode = ask("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
                raise
            mode = ask("PRAGMA journal_mode=DELETE")
        if mode != "wal" and self.path not in _warned:
            _warned.add(self.path)
            _log.warning(
                "%s lies on a file system without shared memory (a network drive?), so SQLite's write-ahead log "
                "cannot be used. Everything is still durable, but readers and writers wait for each other.", self.path,
            )  # fmt: skip
        return mode

    def _open_read_only(self, reason: StorageError) -> None:
        """For a directory that cannot be written: as others may still write, else as it lies there."""
        self.read_only, self._reason = True, str(reason)
        for mode in ("ro", "ro&immutable=1"):
            self._mode = mode
            with suppress(sqlite3.OperationalError), closing(self._connect(mode)) as connection:
                (owner,) = connection.execute("PRAGMA application_id").fetchone()
                self.journal = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
                if owner == self._application_id:
                    self._inspect(connection)
                    break
        else:
            raise reason
        if mode != "ro" and os.path.exists(f"{self.path}-wal") and os.path.getsize(f"{self.path}-wal"):
            raise StorageError(
                f"{self.path} has a log with messages that are not in it yet, and they cannot be read where nothing "
                "can be written. Copy both files to a directory that can be written."
            ) from reason

    _mode = "rw"

    def _connect(self, mode: str) -> Connection:
        # Each time: SQLite would delete the log of a file that has become empty in the meantime.
        refuse_lost(self.path)
        options = f"mode={mode}" + (f"&vfs={self._vfs}" if self._vfs else "")
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?{options}",
            uri=True,
            timeout=_SHORT_WAIT_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        connection.execute("PRAGMA foreign_keys=1")
        return connection

    def _writing_connection(self) -> Connection:
        if self._closed:
            raise StorageError(f"{self.path} has been closed.")
        if self._writer is None:
            with self._translated():
                self._writer = self._prepare(self._connect("rw"))
            self._identity = identity(self._file)
        return self._writer

    def _leave_file(self) -> None:
        """Close a file that has no name any more; SQLite leaves the log of its successor alone."""
        connections = [*self._readers, *([self._writer] if self._writer else [])]
        self._readers, self._writer = [], None
        for connection in connections:
            connection.close()

    def _borrow(self) -> Connection:
        if self._closed:
            raise StorageError(f"{self.path} has been closed.")
        if self._identity is not None and identity(self._file) != self._identity:
            with self._lock:
                self._leave_file()
                self._identity = identity(self._file)
        try:
            return self._readers.pop()
        except IndexError:
            connection = self._connect(self._mode)
            connection.execute(f"PRAGMA busy_timeout={int(self._wait * 1000)}")
            connection.execute("PRAGMA query_only=1")
            return connection

    def hold_for_fork(self) -> bool:
        """Let no write begin; False when this very thread is in one."""
        return self._writing_thread != threading.get_ident() and self._lock.acquire(timeout=self._wait)

    def go_on_after_fork(self) -> None:
        self._lock.release()

    def leave_parent_process(self) -> None:
        """After a fork the connections belong to the parent: they are left alone, never used or closed."""
        _of_parents.extend([*self._readers, *([self._writer] if self._writer else [])])
        self._readers, self._writer, self._checkpoint = [], None, None
        self._lock, self._nested, self._writing_thread = threading.Lock(), threading.local(), 0

    def _make_room(self, connection: Connection, error: sqlite3.Error) -> None:
        """After a full disk: the log may be what fills it, and copying it back frees its room for the next try."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _copy_back_when_large(self) -> None:
        if self.journal != "wal" or (self._checkpoint is not None and self._checkpoint.is_alive()):
            return
        with suppress(FileNotFoundError):
            if os.stat(f"{self.path}-wal").st_size > _LARGE_LOG:
                self._checkpoint = threading.Thread(target=self._copy_back, name="memoranda-checkpoint", daemon=True)
                self._checkpoint.start()

    def _copy_back(self) -> None:
        """Copy nearly all of the log while others write; then the rest, which takes a moment, so that it begins anew.

        Without the second step somebody who writes all the time would make it grow for ever.
        """
        try:
            with closing(self._connect("rw")) as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                connection.execute(f"PRAGMA busy_timeout={_MOMENT_MS}")
                connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        except sqlite3.Error as error:
            _log.warning("The log of %s could not be copied back: %s. It will be tried again.", self.path, error)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise explained(error, self.path, self._wait) from error
        except UnicodeEncodeError as error:
            raise unstorable(error) from error


# Paths that were complained about, and connections of a process that this one was forked from.
_warned: set[Path] = set()
_of_parents: list[Connection] = []


def _retry(connection: Connection, statement: str, deadline: float) -> sqlite3.Cursor:
    """Try again while somebody else is writing, at moments that no two writers share."""
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in CONTENTION or time.monotonic() >= deadline:
                raise
            time.sleep(random.uniform(*_JITTER))
