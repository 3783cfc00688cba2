"""How the writers of one SQLite file take turns: transactions, the threads of a process, and several processes.

Threads that write at the same time share one transaction, and so one sync of the disk (`write_together`). The thread
that gets the lock executes its own write and those of all threads that wait, and commits once. Each of them continues
when its write is durable. Without this, the threads of a process would wait for as many syncs as there are threads, and
after each of them for Python's global lock, which a thread that computes holds for 5 ms at a time. A write that fails
is repeated alone, so that its error reaches its own thread and no other.

SQLite has no queue for processes: each tries again until the file is free, and the process that has just written is the
first to know that it is. So waiting writers try often, and a writer that had to wait for its last transaction pauses
before its next one, in which time another gets its turn (`WriterTurns`).
"""

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol, TypeVar

from memoranda.errors import LockTimeoutError, ReplacedStoreError, SessionError, StorageError
from memoranda.storage.connection import Connection
from memoranda.storage.sqlite.error_mapping import is_contention, is_disk_full

# How many writes share a transaction, at most: the first of them waits for all others.
_MAX_GROUP = 64
# A thread that waits looks after so many seconds whether it was forgotten, because an interrupt came at a bad time.
_MAX_SLEEP = 0.25

_Answer = TypeVar("_Answer")


class LockTaken(Exception):
    """Another thread of this process is writing."""


class _GroupFailed(Exception):
    """The write of another thread failed in a shared transaction, which was rolled back."""


class WriteRequest:
    """What a thread wants to write, until it is durable."""

    __slots__ = ("_awake", "alone", "done", "result", "work")

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.done = False
        # It has failed in a group, or the group has failed, so it gets a transaction of its own.
        self.alone = False
        self._awake = threading.Lock()
        self._awake.acquire()

    def wake(self) -> None:
        # Waking a thread that is awake does nothing.
        with suppress(RuntimeError):
            self._awake.release()

    def sleep(self, seconds: float) -> None:
        self._awake.acquire(timeout=seconds)


class WaitingWrites:
    """The requests of threads that wait for the lock, and those that are part of the current transaction.

    Only the thread that holds the lock calls `take`, `finish` and `put_back`.
    """

    def __init__(self) -> None:
        self.requests: deque[WriteRequest] = deque()
        self._taken: list[WriteRequest] = []

    def take(self) -> list[WriteRequest]:
        """Make waiting requests part of the current transaction, the oldest first."""
        for request in list(self.requests)[:_MAX_GROUP]:
            # An interrupt may have put a request back twice.
            if not request.alone and self.remove(request) and not request.done and request not in self._taken:
                self._taken.append(request)
        return list(self._taken)

    def finish(self) -> None:
        """The current transaction is durable."""
        for request in self._taken:
            request.done = True
            request.wake()
        self._taken = []

    def put_back(self) -> None:
        """The current transaction was rolled back."""
        self.requests.extendleft(reversed(self._taken))
        self._taken = []

    def remove(self, request: WriteRequest) -> bool:
        """Remove a request that waits; False if it does not wait."""
        try:
            self.requests.remove(request)
        except ValueError:
            return False
        return True

    def wake_first(self) -> None:
        """Let the thread that has waited longest try to get the lock."""
        with suppress(IndexError):
            while self.requests[0].done:
                self.requests.popleft()
            self.requests[0].wake()


class SharedDatabase(Protocol):
    """The parts of a database that `write_together` needs."""

    waiting: WaitingWrites

    def writing_now(self) -> AbstractContextManager[Connection]:
        """One transaction; raises LockTaken while another thread writes."""


def write_together(database: SharedDatabase, work: Callable[[Connection], _Answer], wait: float) -> _Answer:
    """Call `work` in a transaction and return its result when that is durable, together with other threads' work."""
    # The usual case first: no thread is writing.
    try:
        return _lead(database, work, None)
    except (LockTaken, _GroupFailed):
        may_free_space = True
    except StorageError as error:
        # Rolling back has emptied the log, if that was possible.
        if not is_disk_full(error):
            raise
        may_free_space = False
    deadline, waiting, request = time.monotonic() + wait, database.waiting, WriteRequest(work)
    waiting.requests.append(request)
    try:
        while not request.done:
            # At once: the thread that was writing may have released the lock before the request was in the queue.
            try:
                return _lead(database, work, request)
            except LockTaken:
                request.sleep(min(_MAX_SLEEP, max(0.0, deadline - time.monotonic())))
            except _GroupFailed:
                waiting.requests.append(request)
            except StorageError as error:
                if not may_free_space or not is_disk_full(error):
                    raise
                may_free_space = False
                waiting.requests.append(request)
            if time.monotonic() >= deadline and waiting.remove(request):
                raise LockTimeoutError(f"Another thread has been writing for {wait:g} s. Nothing was written.")
        return request.result  # type: ignore[no-any-return]
    finally:
        waiting.remove(request)


def _lead(database: SharedDatabase, work: Callable[[Connection], _Answer], request: WriteRequest | None) -> _Answer:
    """Execute a write and those of the threads that wait, and commit them."""
    group: list[WriteRequest] = []
    try:
        with database.writing_now() as connection:
            if request is not None:
                if request.done:
                    return request.result  # type: ignore[no-any-return]
                database.waiting.remove(request)
            answer = work(connection)
            if database.waiting.requests and (request is None or not request.alone):
                group = database.waiting.take()
                _execute(group, connection)
        return answer
    except (LockTimeoutError, ReplacedStoreError, SessionError):
        raise
    except StorageError as error:
        if not group:
            raise
        for each in group:
            each.alone = True
        raise _GroupFailed from error


def _execute(group: list[WriteRequest], connection: Connection) -> None:
    for request in group:
        try:
            request.result = request.work(connection)
        except Exception as error:
            request.alone = True
            raise _GroupFailed from error


class WritableDatabase(Protocol):
    """The parts of a database that a transaction needs."""

    control_cursor: sqlite3.Cursor | None
    """The cursor of the transaction that is open."""

    def begin(self, *, wait_for_lock: bool) -> sqlite3.Connection: ...
    def commit(self, control_cursor: sqlite3.Cursor | None) -> None: ...
    def roll_back(self, error: BaseException) -> None: ...
    def abandon(self) -> None: ...


class Transaction:
    """The context manager of `writing`: cheaper than a generator, which matters for every append."""

    # A class attribute, so that `__del__` works even if an interrupt prevented the initialisation.
    _cursor: sqlite3.Cursor | None = None

    def __init__(self, database: WritableDatabase, *, wait_for_lock: bool = True) -> None:
        self._database = database
        self._wait_for_lock = wait_for_lock

    def __enter__(self) -> sqlite3.Connection:
        connection = self._database.begin(wait_for_lock=self._wait_for_lock)
        self._cursor = self._database.control_cursor
        return connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._database.commit(self._cursor)
        elif self._cursor is self._database.control_cursor:
            self._database.roll_back(error)

    def __del__(self) -> None:
        # An interrupt can come between the last line of the block and the first line of `__exit__`.
        if self._cursor is not None and self._cursor is self._database.control_cursor:
            self._database.abandon()


class WriterTurns:
    """Begins the transactions of one connection."""

    def __init__(self) -> None:
        self._had_to_wait = False

    def begin(self, cursor: sqlite3.Cursor, deadline: float) -> None:
        """Begin a transaction that writes; waits for other processes until the deadline."""
        if self._had_to_wait:
            self._had_to_wait = False
            pause()
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_contention(error):
                raise
            self._had_to_wait = True
            pause()
            retry(cursor, "BEGIN IMMEDIATE", deadline)


def retry(connection: sqlite3.Connection | sqlite3.Cursor, statement: str, deadline: float) -> sqlite3.Cursor:
    """Execute a statement; retry while another process holds the lock, until the deadline."""
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not is_contention(error) or time.monotonic() >= deadline:
                raise
            pause()


def pause() -> None:
    """Sleep for a random short time, so that waiting writers do not retry together."""
    time.sleep(random.uniform(0.0005, 0.003))


@contextmanager
def busy_timeout(connection: sqlite3.Connection, milliseconds: int) -> Iterator[None]:
    """Let SQLite itself wait for locks in the block; otherwise the connection that writes retries as above."""
    connection.execute(f"PRAGMA busy_timeout={milliseconds}")
    try:
        yield
    finally:
        connection.execute("PRAGMA busy_timeout=0")
