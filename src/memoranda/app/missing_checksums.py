"""Adds the checksums of messages that an earlier version recorded, in a thread of a long-running process."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from memoranda.app.background_task import START_DELAY_SECONDS, in_background
from memoranda.db.orphaned_wal import record_exists
from memoranda.errors import MemorandaError

_log = logging.getLogger(__name__)


@contextmanager
def fill_checksums_in_background(state_db: Path) -> Iterator[None]:
    """While the block runs, add what is missing; if the process ends before that, the next one continues."""
    with in_background("memoranda-checksums", partial(fill_missing_checksums, state_db), START_DELAY_SECONDS):
        yield


def fill_missing_checksums(state_db: Path, stopped: threading.Event) -> None:
    """Add the checksums of an earlier version's messages to a record that exists; a failure is logged."""
    # Loaded in the thread: most processes do not need it, and a hook must start fast.
    from memoranda.sessions.store import open_store

    if not record_exists(state_db):
        return
    try:
        with open_store(state_db) as store:
            count = 0 if store.engine.read_only else store.checksums.fill_checksums_of_earlier_version(stopped.is_set)
    except (MemorandaError, OSError, sqlite3.Error) as error:
        _log.warning("Checksums of older messages could not be added: %s", error)
        return
    if count:
        _log.info("Added the checksums of %d messages that an earlier version recorded.", count)
