"""Prunes old sessions in a thread of a long-running process, when the settings of the home ask for it."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.api.background_task import START_DELAY_SECONDS, in_background
from memoranda.errors import MemorandaError
from memoranda.memory.record.settings import RetentionSettings
from memoranda.memory.record.store import open_store
from memoranda.storage.orphaned_wal import record_exists

_log = logging.getLogger(__name__)


@contextmanager
def prune_in_background(location: Path | str, settings: RetentionSettings) -> Iterator[None]:
    """While the block runs, delete what is due, once; without `auto_prune` nothing happens.

    The sessions of all users are pruned. The thread has its own connection, deletes a few sessions at a time, and stops
    after the present step when the block ends.
    """
    if not settings.auto_prune:
        yield
        return
    with in_background(
        "memoranda-prune", lambda stopped: prune_if_due(location, settings, stopped), START_DELAY_SECONDS
    ):
        yield


def prune_if_due(location: Path | str, settings: RetentionSettings, stopped: threading.Event) -> None:
    """Prune a record that exists, and log what was deleted; a failure is logged, and the next process tries again."""
    if not record_exists(location):
        return
    try:
        with open_store(location) as store:
            count = store.scheduled_prune.prune_when_due(
                settings.retention_days,
                interval_hours=settings.min_interval_hours,
                vacuum=settings.vacuum_after_prune,
                stopped=stopped.is_set,
            )
    except (MemorandaError, OSError, sqlite3.Error) as error:
        _log.warning("Old sessions could not be pruned: %s", error)
        return
    if count:
        _log.info("Deleted %d sessions without a message for %d days.", count, settings.retention_days)
