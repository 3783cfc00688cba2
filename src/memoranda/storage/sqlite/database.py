"""One SQLite file, shared by many threads and processes.

There is one short `BEGIN IMMEDIATE` transaction at a time, retried with jitter until a deadline; a commit has reached
the disk. Readers use separate connections and see one consistent state. A background thread checkpoints the write-ahead
log, so that no writer waits for it. Only SQLite opens the file: closing any other descriptor would drop the locks that
this process holds on it.

The space of deleted rows returns to the file system in short steps: SQLite moves pages from the end of the file to free
places.
"""

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from memoranda.errors import (
    CorruptStoreError,
    LockTimeoutError,
    NewerStoreError,
    NoLocksError,
    ReplacedStoreError,
    StorageError,
)
from memoranda.storage.connection import Connection as AnyConnection
from memoranda.storage.forks import file_identity, is_of_parent, keep_in_children, process_mark, require_same_process
from memoranda.storage.orphaned_wal import refuse_missing_main_file, replaced_error
from memoranda.storage.sqlite.error_mapping import damage_error, encoding_error, is_contention, storage_error
from memoranda.storage.sqlite.write_ahead_log import (
    LOG_KEPT,
    WalCheckpointer,
    choose_journal,
    connect,
    empty_log,
    free_log_space,
    open_with_retries,
    prepare_connection,
)
from memoranda.storage.sqlite.writer_turns import (
    LockTaken,
    Transaction,
    WaitingWrites,
    WriterTurns,
    busy_timeout,
    pause,
    retry,
    write_together,
)
from memoranda.support.durable_files import create_private_file

SHRINK_IN_STEPS = "PRAGMA auto_vacuum=INCREMENTAL"
_STEPS_BETWEEN_CHECKS = 10_000
# A step of so many pages takes a few milliseconds; then other writers have a chance.
_PAGES_PER_STEP = 100
_VACUUM_LOCK_TIMEOUT_MS = 1000
_PAUSE_BETWEEN_STEPS = 0.005

_STEPS_BETWEEN_SIGNALS = 100_000
_MAX_PROBLEMS = 20

_IDLE_READERS = 4
PAGE_SIZE = 4096

Connection = sqlite3.Connection
_Answer = TypeVar("_Answer")
_databases: "WeakSet[Database]" = WeakSet()


class Database:
    """An open file; `read_only` says whether it cannot be written, `journal` which journal mode SQLite uses."""

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        inspect: Callable[[Connection], None] = lambda connection: None,
        wait: float = 10.0,
        vfs: str = "",
        durable: bool = True,
    ) -> None:
        """Open the file, or create it. `inspect` is called first and raises if the file must not be used.

        A power cut may take the last commits of a file that is not `durable`.
        """
        self.path = path
        self.read_only = False
        self.journal = ""
        self._application_id = application_id
        self._inspect = inspect
        self._wait, self._vfs, self._durable = wait, vfs, durable
        self._lock = threading.RLock()
        self._nested = threading.local()
        self._writer: Connection | None = None
        self._readers: list[Connection] = []
        self._writing_thread = 0
        self._deadline = 0.0
        self._turns = WriterTurns()
        self.waiting = WaitingWrites()
        self.control_cursor: sqlite3.Cursor | None = None
        self._checkpoints = WalCheckpointer(path)
        self._reason = ""
        self._identity: tuple[int, int] | None = None
        self._file = str(path)
        self._closed = False
        self._opened_in = process_mark()
        self._open()
        _databases.add(self)
        # Its cursor belongs to a connection that another thread may be using during the fork.
        keep_in_children(self)

    def writing(self) -> AbstractContextManager[Connection]:
        """One transaction: durable when the block ends, rolled back if the block raises.

        A nested transaction rolls the outer one back; the outer block then raises when it ends.
        """
        return Transaction(self)

    def writing_now(self) -> AbstractContextManager[Connection]:
        """The same, but raises LockTaken while another thread of this process writes."""
        return Transaction(self, wait_for_lock=False)

    def write(self, work: Callable[[AnyConnection], _Answer]) -> _Answer:
        """Call `work` in a transaction, and return its result when that is durable.

        Threads that write at the same time share a transaction, so `work` may be called again after a rollback.
        """
        require_same_process(self._opened_in, self.path)
        if self._writing_thread == threading.get_ident():
            # A nested write, or one after an interrupt that prevented the last one from ending.
            with self.writing() as connection:
                return work(connection)
        return write_together(self, work, self._wait)

    def begin(self, *, wait_for_lock: bool) -> Connection:
        """For `Transaction`."""
        require_same_process(self._opened_in, self.path)
        if self.read_only:
            raise StorageError(f"{self.path} is open read-only. {self._reason}")
        thread, deadline = threading.get_ident(), time.monotonic() + self._wait
        if self._writing_thread == thread:
            self.abandon()
        try:
            # Acquiring with a timeout costs more than trying, and the lock is usually free.
            if not self._lock.acquire(blocking=False):
                if not wait_for_lock:
                    raise LockTaken
                if not self._lock.acquire(timeout=self._wait):
                    raise LockTimeoutError(f"Another thread has been writing {self.path} for {self._wait:g} s.")
            self._writing_thread, self._deadline = thread, deadline
            connection = self._writing_connection()
            # One cursor for BEGIN and COMMIT: creating one costs as much as a small statement.
            self.control_cursor = connection.cursor()
            self._turns.begin(self.control_cursor, deadline)
            return connection
        except BaseException as error:
            if self._writing_thread == thread:
                self.roll_back(error)
            else:
                # An interrupt may have come between acquiring the lock and recording the owner.
                with suppress(RuntimeError):
                    self._lock.release()
            raise

    def commit(self, control_cursor: sqlite3.Cursor | None) -> None:
        require_same_process(self._opened_in, self.path)
        if control_cursor is None or control_cursor is not self.control_cursor:
            raise RuntimeError(f"A nested write to {self.path} began, so this write was rolled back.")
        try:
            if file_identity(self._file) != self._identity:
                raise replaced_error(self._file)
            retry(control_cursor, "COMMIT", self._deadline)
        except BaseException as error:
            self.roll_back(error)
            raise
        self.waiting.finish()
        self._release()
        if self.journal == "wal" and self._checkpoints.note_commit(self._connect):
            # The write is durable, and the next one tries again.
            with suppress(StorageError):
                self._use_writer(empty_log)

    def roll_back(self, error: BaseException) -> None:
        """Roll back, and raise Memoranda's error instead of SQLite's."""
        if is_of_parent(self._opened_in):
            return
        # An interrupt may have come after the commit; SQLite itself rolls back after some errors.
        committed = not isinstance(error, sqlite3.Error)
        try:
            connection = self._writer
            if connection is not None and connection.in_transaction:
                committed = False
                connection.execute("ROLLBACK")
            if isinstance(error, ReplacedStoreError):
                self._close_connections()
            if isinstance(error, UnicodeEncodeError):
                raise encoding_error(error) from error
            if isinstance(error, sqlite3.Error):
                if connection is not None:
                    free_log_space(connection, error)
                raise storage_error(error, self.path, self._wait) from error
        finally:
            if committed:
                self.waiting.finish()
            else:
                self.waiting.put_back()
            self._release()

    def abandon(self) -> None:
        """Roll back a transaction of this thread that an interrupt prevented from ending."""
        if self._writing_thread == threading.get_ident():
            self.roll_back(KeyboardInterrupt())

    def _release(self) -> None:
        self._writing_thread, self.control_cursor = 0, None
        self._lock.release()
        if self.waiting.requests:
            self.waiting.wake_first()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view; no writer waits for it. Inside `writing`, use its connection instead."""
        require_same_process(self._opened_in, self.path)
        if self._writing_thread == threading.get_ident():
            raise RuntimeError("A read inside a write would wait for itself without a write-ahead log.")
        outer: Connection | None = getattr(self._nested, "connection", None)
        if outer is not None:
            # A nested read sees the same view.
            with self._mapped_errors():
                yield outer
            return
        with self._mapped_errors():
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
        """Checkpoint and empty the log, so that no file contains deleted text; False while a reader needs it."""
        if self.journal != "wal" or self.read_only:
            return True
        # A checkpoint of this process would be in the way.
        self._checkpoints.close()
        return self._use_writer(empty_log)

    def check(self, *, thorough: bool = False) -> list[str]:
        """Describe damage in SQLite's words; empty if the file is undamaged. `thorough` includes the indexes."""
        try:
            with self.reading() as connection:
                return find_damage(connection, thorough)
        except CorruptStoreError as error:
            return [str(error.__cause__ or error)]

    def vacuum(self, max_seconds: float | None = None) -> bool:
        """Rewrite the file without the space of deleted rows; give up after `max_seconds`, which leaves it as it is."""
        return self._use_writer(lambda connection: rewrite_file(connection, max_seconds))

    def release_space(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Return free space to the file system, in steps between which others write; returns the bytes left."""
        return release_space(self._use_writer, stopped, self._wait) * self._use_writer(read_page_size)

    def _use_writer(self, ask: Callable[[Connection], _Answer]) -> _Answer:
        require_same_process(self._opened_in, self.path)
        with self._lock, self._mapped_errors():
            return ask(self._writing_connection())

    @property
    def closed(self) -> bool:
        """Whether nothing of it is open in this process."""
        return self._closed or is_of_parent(self._opened_in)

    def close(self) -> None:
        """Close every connection; the last process to close checkpoints the log."""
        if is_of_parent(self._opened_in):
            return
        self._closed = True
        with self._lock:
            self._close_connections()

    def _open(self) -> None:
        try:
            if not self.path.exists():
                refuse_missing_main_file(self.path)
                create_private_file(self.path)
            self._writer = open_with_retries(self._open_writer, self._wait)
            self._identity = file_identity(self._file)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be created: {error.strerror}.") from error
        except StorageError as error:
            if isinstance(error, CorruptStoreError | LockTimeoutError | NewerStoreError | NoLocksError):
                raise
            self._open_read_only(error)

    def _open_writer(self) -> Connection:
        with self._mapped_errors():
            return prepare_connection(self._connect, self._prepare)

    def _prepare(self, connection: Connection) -> Connection:
        try:
            (owner,) = connection.execute("PRAGMA application_id").fetchone()
            if owner != self._application_id:
                # Both take effect only in an empty file; files from before have pages of 8 KB.
                connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
                connection.execute(SHRINK_IN_STEPS)
                claim_file(connection, self.path, self._application_id, time.monotonic() + self._wait)
            # Before any change, so that a file that must not be used keeps every byte.
            self._inspect(connection)
            self.journal = choose_journal(connection, self.path, time.monotonic() + self._wait)
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("PRAGMA secure_delete=1")
            connection.execute(f"PRAGMA journal_size_limit={LOG_KEPT}")
            if self.journal != "wal":
                connection.execute("PRAGMA synchronous=EXTRA")
            else:
                connection.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            if sys.platform == "darwin":
                connection.execute("PRAGMA fullfsync=1")
            # From here on, `WriterTurns` waits.
            connection.execute("PRAGMA busy_timeout=0")
            return connection
        except BaseException:
            connection.close()
            raise

    def _open_read_only(self, reason: StorageError) -> None:
        """Open a file in a directory that cannot be written, with its log if SQLite can read that."""
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
                f"{self.path} has a log with messages that are not in the file yet, and SQLite cannot read the log in "
                "a read-only directory. Copy both files to a writable directory."
            ) from reason

    _mode = "rw"

    def _connect(self, mode: str = "rw") -> Connection:
        return connect(self.path, f"mode={mode}" + (f"&vfs={self._vfs}" if self._vfs else ""))

    def _writing_connection(self) -> Connection:
        if self._closed:
            raise StorageError(f"{self.path} has been closed.")
        if self._writer is None:
            self._writer = self._open_writer()
            self._identity = file_identity(self._file)
        return self._writer

    def _close_connections(self) -> None:
        """Close all connections. If the file was replaced, SQLite does not change the log of the new file."""
        self._checkpoints.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        with suppress(IndexError):
            while True:  # Another thread may take an idle one at any time.
                self._readers.pop().close()

    def _borrow(self) -> Connection:
        if self._closed:
            raise StorageError(f"{self.path} has been closed.")
        if self._identity is not None and file_identity(self._file) != self._identity:
            with self._lock:
                self._close_connections()
                self._identity = file_identity(self._file)
        try:
            return self._readers.pop()
        except IndexError:
            connection = self._connect(self._mode)
            connection.execute(f"PRAGMA busy_timeout={int(self._wait * 1000)}")
            connection.execute("PRAGMA query_only=1")
            return connection

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise storage_error(error, self.path, self._wait) from error
        except UnicodeDecodeError as error:
            # SQLite's message about a damaged schema quotes it, and then Python cannot read the message.
            raise damage_error(self.path, "its schema is not text") from error
        except UnicodeEncodeError as error:
            raise encoding_error(error) from error


def is_open_here(path: Path) -> bool:
    """Whether this process has the database open: its own locks would not stop it, and it would lose them."""
    real_path = os.path.realpath(path)
    return any(not database.closed and os.path.realpath(database.path) == real_path for database in list(_databases))


def claim_file(connection: sqlite3.Connection, path: Path, application_id: int, deadline: float) -> None:
    """Set our application id in an empty file; a file with other content belongs to another program."""
    retry(connection, "BEGIN IMMEDIATE", deadline)
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != application_id and (tables or owner):
        connection.execute("ROLLBACK")
        raise CorruptStoreError(f"{path} was not written by Memoranda. It was not changed.")
    connection.execute(f"PRAGMA application_id={application_id}")
    connection.execute("COMMIT")


def find_damage(connection: sqlite3.Connection, thorough: bool) -> list[str]:
    """Describe damage in SQLite's words; a thorough check also compares indexes with their tables, and takes longer."""
    # Python handles a signal only while it runs, so it gets a chance now and then.
    connection.set_progress_handler(lambda: 0, _STEPS_BETWEEN_SIGNALS)
    try:
        kind = "integrity_check" if thorough else "quick_check"
        found = [str(row[0]) for row in connection.execute(f"PRAGMA {kind}({_MAX_PROBLEMS})")]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from error
        raise
    finally:
        connection.set_progress_handler(None, 0)
    return [] if found == ["ok"] else found


def rewrite_file(connection: sqlite3.Connection, max_seconds: float | None) -> bool:
    """Rewrite the file; give up after `max_seconds`, which leaves it as it is, and return False."""
    connection.execute(SHRINK_IN_STEPS)
    if max_seconds is not None:
        deadline = time.monotonic() + max_seconds
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    try:
        with busy_timeout(connection, _VACUUM_LOCK_TIMEOUT_MS):
            connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return False
    finally:
        connection.set_progress_handler(None, 0)
    return True


def release_space(
    use: Callable[[Callable[[sqlite3.Connection], int]], int], stopped: Callable[[], bool], wait: float
) -> int:
    """Return free pages to the file system until none is left, or `stopped`; returns how many pages are still free.

    `use` calls a function with the connection that writes.
    """
    free = use(_count_free_pages)
    while free and not stopped():
        left = use(lambda connection: _release_pages(connection, time.monotonic() + wait))
        if left >= free:
            # Others delete faster.
            return left
        free = left
        time.sleep(_PAUSE_BETWEEN_STEPS)
    return free


def read_page_size(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA page_size").fetchone()[0])


def _count_free_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def _release_pages(connection: sqlite3.Connection, deadline: float) -> int:
    while True:
        try:
            # `execute` would release a single page: the statement must be stepped to its end.
            connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_PER_STEP})")
            return _count_free_pages(connection)
        except sqlite3.OperationalError as error:
            if not is_contention(error) or time.monotonic() >= deadline:
                raise
            pause()
