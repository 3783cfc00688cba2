"""Maintenance of the record in threads of a long-running process, which begin half a minute after it and stop with it.

They prune old sessions when the settings of the home ask for it, remove expired items, and store system prompts where
Hermes reads them, if it uses the same file.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import MemorandaError
from memoranda.memory.record.settings import RetentionSettings
from memoranda.storage.orphaned_wal import record_exists

if TYPE_CHECKING:
    from memoranda.memory.record.store import SessionStore

# A process that ends sooner is not long-running, and what it was started for comes first.
START_DELAY_SECONDS = 30.0
_STOP_SECONDS = 2.0


@contextmanager
def in_background(name: str, work: Callable[[threading.Event], object], delay: float) -> Iterator[None]:
    """Call `work` in a thread while the block runs; when the block ends, the event is set, and `work` should return."""
    stopped = threading.Event()

    def run() -> None:
        if not stopped.wait(delay):
            work(stopped)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=_STOP_SECONDS)


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

    def prune(store: "SessionStore") -> None:
        count = store.scheduled_prune.prune_when_due(
            settings.retention_days,
            interval_hours=settings.min_interval_hours,
            vacuum=settings.vacuum_after_prune,
            stopped=stopped.is_set,
        )
        if count:
            _log.info("Deleted %d sessions without a message for %d days.", count, settings.retention_days)

    _use_record(location, prune, "Old sessions could not be pruned")


def _use_record(location: Path | str, work: "Callable[[SessionStore], None]", failure: str) -> None:
    """Call `work` with a record that exists, which is loaded only now; a failure is logged."""
    import sqlite3

    from memoranda.memory.record.store import open_store

    try:
        if record_exists(location):
            with open_store(location) as store:
                work(store)
    except (MemorandaError, OSError, sqlite3.Error) as error:
        _log.warning("%s: %s", failure, error)


_INTERVAL_SECONDS = 3600.0


@contextmanager
def remove_expired_in_background(location: Path | str) -> Iterator[None]:
    """While the block runs, remove what has expired, once every hour."""
    with in_background("memoranda-expired", partial(remove_expired_items, location), START_DELAY_SECONDS):
        yield


def remove_expired_items(location: Path | str, stopped: threading.Event) -> None:
    """Remove the expired items of all users from a record that exists, until `stopped`; a failure is logged."""

    def remove(store: "SessionStore") -> None:
        if not store.engine.read_only and (count := store.items.remove_expired()):
            _log.info("Removed %d expired items.", count)

    while not stopped.is_set():
        _use_record(location, remove, "Expired items could not be removed")
        stopped.wait(_INTERVAL_SECONDS)


@contextmanager
def fill_prompts_in_background(location: Path | str) -> Iterator[None]:
    """While the block runs, store prompts where Hermes reads them; if the process ends before, the next continues."""
    with in_background("memoranda-prompts", partial(fill_prompts, location), START_DELAY_SECONDS):
        yield


def fill_prompts(location: Path | str, stopped: threading.Event) -> None:
    """Store the prompts of a record that exists in the rows of its sessions, if Hermes uses it; logs a failure."""

    def fill(store: "SessionStore") -> None:
        from memoranda.memory.record.system_prompts import SharedPrompts

        if store.engine.read_only:
            return
        if count := SharedPrompts(store.engine, store.scope, None).fill_rows_for_hermes(stopped.is_set):
            _log.info("Stored the prompts of %d sessions where Hermes reads them.", count)

    _use_record(location, fill, "Prompts could not be stored where Hermes reads them")
