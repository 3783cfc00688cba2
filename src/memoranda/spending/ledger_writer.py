"""Writing the ledger behind the conversation's back: nobody waits for it, and nobody hears of its troubles.

A thread lives for as long as there is something to write. What cannot be written is tried again for a while and then
given up with an error in the log.
"""

import logging
import threading
import time
from collections.abc import Sequence

from memoranda.db import fork_safety
from memoranda.db.lazy_database import LazyDatabase
from memoranda.errors import StorageError
from memoranda.spending.call_record import STORE, CallRecord

_log = logging.getLogger(__name__)

_TRIES = 5
_FIRST_PAUSE = 0.2
_MOST_WAITING = 10_000


def store_calls(file: LazyDatabase, calls: Sequence[CallRecord]) -> None:
    """Write calls down, or what has become known of them; durable when this returns."""
    with file.open().writing() as connection:
        connection.executemany(STORE, [call.values() for call in calls])


class LedgerWriter:
    """Writes calls down, in order, from a thread of its own."""

    def __init__(self, file: LazyDatabase) -> None:
        self._file = file
        self._changed = threading.Condition()
        self._waiting: list[CallRecord] = []
        self._thread: threading.Thread | None = None
        self._in_a_hurry = False
        fork_safety.watch(self)

    def put(self, call: CallRecord) -> None:
        """Take a call to be written; returns at once."""
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                _log.error("The ledger cannot be written; a call for %s is not in it.", call.purpose)
                return
            self._waiting.append(call)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="memoranda-ledger", daemon=True)
                self._thread.start()

    def flush(self, timeout: float, *, last: bool = False) -> bool:
        """Wait until everything is written, at most so long; whether it is. `last` says that nothing more will come."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self._in_a_hurry = self._in_a_hurry or last
            self._changed.notify_all()
            while self._thread is not None and self._thread.is_alive():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def hold_for_fork(self) -> bool:
        return self._changed.acquire(timeout=1)

    def resume_after_fork(self) -> None:
        self._changed.release()

    def reset_in_child(self) -> None:
        """The parent writes what was waiting."""
        self._changed, self._thread, self._waiting = threading.Condition(), None, []

    def _run(self) -> None:
        while True:
            with self._changed:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._thread = None
                    self._changed.notify_all()
                    return
            self._write_patiently(batch)

    def _write_patiently(self, batch: Sequence[CallRecord]) -> None:
        for attempt in range(_TRIES):
            try:
                store_calls(self._file, batch)
                return
            except StorageError as error:
                _log.warning("The ledger could not be written: %s", error)
            with self._changed:
                if self._in_a_hurry:
                    break
                self._changed.wait(_FIRST_PAUSE * 2**attempt)
        _log.error("%d calls of models are not in the ledger.", len(batch))
