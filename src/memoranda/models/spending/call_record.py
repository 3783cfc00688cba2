"""The record of one model call, and a thread that writes such records to the ledger.

A conversation never waits for the ledger or fails with it. The thread runs while there are rows to write. It retries a
failed write a few times, then drops the rows and logs an error.
"""

import logging
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import astuple, field, fields

from memoranda.errors import StorageError
from memoranda.models.model import Usage
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.support.lazy_dataclass import dataclass

OK, RUNNING, INTERRUPTED = "ok", "running", "interrupted"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A row of `calls`; the fields are its columns. `estimated`: Memoranda counted the tokens, not the service."""

    purpose: str
    at: float
    background: bool = False
    session_id: str = ""
    user_id: str = ""
    provider: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    cost_usd: float | None = None
    seconds: float = 0.0
    outcome: str = OK
    most_tokens: int = 0
    most_usd: float = 0.0
    until: float | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def usage(self) -> Usage:
        return Usage(*(getattr(self, column.name) for column in fields(Usage)))

    def values(self) -> tuple[object, ...]:
        """The values of the columns; flags are numbers there."""
        return tuple(int(value) if isinstance(value, bool) else value for value in astuple(self))


COLUMNS = tuple(column.name for column in fields(CallRecord))
# A reserved call has a row already, which is then completed.
UPSERT = (
    f"INSERT INTO calls ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
    " ON CONFLICT (key) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "key")
)


_log = logging.getLogger(__name__)

_TRIES = 5
_FIRST_RETRY_SECONDS = 0.2
_MAX_QUEUED = 10_000


def store_calls(file: LazyDatabase, calls: Sequence[CallRecord]) -> None:
    """Inserts calls, or updates reserved ones; durable when this returns."""
    with file.open().writing() as connection:
        connection.executemany(UPSERT, [call.values() for call in calls])


class LedgerWriter:
    """Writes queued calls in order, in its own thread."""

    def __init__(self, file: LazyDatabase) -> None:
        self._file = file
        self._changed = threading.Condition()
        self._queue: list[CallRecord] = []
        self._thread: threading.Thread | None = None
        self._closing = False

    def put(self, call: CallRecord) -> None:
        """Queues a call; returns at once."""
        with self._changed:
            if len(self._queue) >= _MAX_QUEUED:
                _log.error("The ledger cannot be written; a call for %s was not recorded.", call.purpose)
                return
            self._queue.append(call)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="memoranda-ledger", daemon=True)
                self._thread.start()

    def flush(self, timeout: float, *, last: bool = False) -> bool:
        """Waits at most `timeout` seconds for the queue to be written; returns whether it was. `last` ends retries."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self._closing = self._closing or last
            self._changed.notify_all()
            while self._thread is not None and self._thread.is_alive():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                batch, self._queue = self._queue, []
                if not batch:
                    self._thread = None
                    self._changed.notify_all()
                    return
            self._write_with_retries(batch)

    def _write_with_retries(self, batch: Sequence[CallRecord]) -> None:
        for attempt in range(_TRIES):
            try:
                store_calls(self._file, batch)
                return
            except StorageError as error:
                _log.warning("The ledger could not be written: %s", error)
            with self._changed:
                if self._closing:
                    break
                self._changed.wait(_FIRST_RETRY_SECONDS * 2**attempt)
        _log.error("%d model calls are missing from the ledger.", len(batch))
