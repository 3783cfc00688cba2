"""Removes expired items from the record, in a thread of a long-running process."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from memoranda.api.background_task import START_DELAY_SECONDS, in_background
from memoranda.errors import MemorandaError
from memoranda.storage.orphaned_wal import record_exists

_log = logging.getLogger(__name__)
_INTERVAL_SECONDS = 3600.0


@contextmanager
def remove_expired_in_background(location: Path | str) -> Iterator[None]:
    """While the block runs, remove what has expired, once every hour."""
    with in_background("memoranda-expired", partial(remove_expired_items, location), START_DELAY_SECONDS):
        yield


def remove_expired_items(location: Path | str, stopped: threading.Event) -> None:
    """Remove the expired items of all users from a record that exists, until `stopped`; a failure is logged."""
    # Loaded in the thread: most processes do not need it, and a hook must start fast.
    from memoranda.memory.record.store import open_store

    while not stopped.is_set():
        if record_exists(location):
            try:
                with open_store(location) as store:
                    count = 0 if store.engine.read_only else store.items.remove_expired()
            except (MemorandaError, OSError, sqlite3.Error) as error:
                _log.warning("Expired items could not be removed: %s", error)
            else:
                if count:
                    _log.info("Removed %d expired items.", count)
        stopped.wait(_INTERVAL_SECONDS)
