"""Completes the record of an earlier version in a thread of a long-running process: checksums and shared prompts."""

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


@contextmanager
def upgrade_record_in_background(location: Path | str) -> Iterator[None]:
    """While the block runs, add what is missing; if the process ends before that, the next one continues."""
    with in_background("memoranda-upgrade", partial(upgrade_record, location), START_DELAY_SECONDS):
        yield


def upgrade_record(location: Path | str, stopped: threading.Event) -> None:
    """Add the checksums of older messages to a record that exists, and store equal prompts once; logs a failure."""
    # Loaded in the thread: most processes do not need it, and a hook must start fast.
    from memoranda.memory.record.store import open_store
    from memoranda.memory.record.system_prompts import SharedPrompts

    if not record_exists(location):
        return
    try:
        with open_store(location) as store:
            if store.engine.read_only:
                return
            checksums = store.checksums.fill_checksums_of_earlier_version(stopped.is_set)
            prompts = SharedPrompts(store.engine, store.scope, None).share_prompts(stopped.is_set)
    except (MemorandaError, OSError, sqlite3.Error) as error:
        _log.warning("The record of an earlier version could not be completed: %s", error)
        return
    if checksums:
        _log.info("Added the checksums of %d messages that an earlier version recorded.", checksums)
    if prompts:
        _log.info("Changed where the prompts of %d sessions are stored.", prompts)
