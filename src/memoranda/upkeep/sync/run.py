"""One run of a synchronisation: what its steps share, and what it reports."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.sync.state import SyncState, SyncTables
from memoranda.upkeep.sync.versions import Clock


@dataclass(slots=True)
class SyncReport:
    """What a run did: counts of what was sent and received, and what a person should know."""

    machine: str = ""
    sent: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)
    bundles_written: int = 0
    conflicts: int = 0
    waiting: list[str] = field(default_factory=list)
    """Bundles that have not arrived completely."""
    overdue: list[str] = field(default_factory=list)
    """Bundles that should have arrived long ago, and what to do."""
    refused: list[str] = field(default_factory=list)
    """Bundles, or parts of the memory, that could not be used, and why."""
    notes: list[str] = field(default_factory=list)
    dry_run: bool = False

    def count(self, counts: dict[str, int], what: str, number: int = 1) -> None:
        if number:
            counts[what] = counts.get(what, 0) + number


class Run:
    """The state of a run, with a transaction of `sync.db` that is always open.

    `bundle` is the bundle that is being read; empty while changes of this home are collected.
    """

    def __init__(
        self, root: Path, db: SessionDB, memory: MemoryStore, state: SyncState, progress: Callable[[str], None]
    ) -> None:
        self.root = root
        self.db = db
        self.memory = memory
        self.progress = progress
        self.report = SyncReport()
        self.bundle = ""
        self.sender = ""
        self.must_rewrite = False
        """A text was forgotten or deleted that a bundle of this machine may contain."""
        self.has_forgotten = False
        self.waits: dict[str, str] = {}
        """What has not arrived, by machine and number of the bundle."""
        self.deleted: list[str] = []
        self.unordered: set[str] = set()
        """Sessions that have received messages, until `order_sessions`."""
        self.unlinked: set[str] = set()
        """Sessions that have arrived, and relatives of deleted ones, until `link_sessions`."""
        self._state = state
        self._transaction: AbstractContextManager[SyncTables] = state.transaction()
        self.tables = self._transaction.__enter__()
        self.number = int(self.tables.value("run", "0")) + 1
        self.clock: Clock = self.tables.clock()

    @property
    def machine(self) -> str:
        return self.tables.machine()

    def commit(self) -> None:
        """Make everything durable so far, and continue."""
        self.tables.save_clock(self.clock)
        if self.must_rewrite:
            self.tables.set_value("rewrite", "1")
        self._transaction.__exit__(None, None, None)
        self._transaction = self._state.transaction()
        self.tables = self._transaction.__enter__()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Make everything durable, and let others use `sync.db` meanwhile."""
        self.commit()
        self.roll_back()
        try:
            yield
        finally:
            self._transaction = self._state.transaction()
            self.tables = self._transaction.__enter__()

    def save_pending(self, session_id: str, after: int, expected: list[list[Any]]) -> None:
        """Note durably which messages are about to be added to the record."""
        self.tables.connection.execute("DELETE FROM pending_messages WHERE session_id = ?", (session_id,))
        self.tables.connection.execute(
            "INSERT INTO pending_messages (session_id, after, expected) VALUES (?, ?, ?)",
            (session_id, after, json.dumps(expected)),
        )
        self.commit()

    def roll_back(self) -> None:
        """Drop everything since the last commit, and end."""
        try:
            raise _RollBack
        except _RollBack:
            try:
                self._transaction.__exit__(*sys.exc_info())
            except _RollBack:
                return

    def end(self) -> None:
        self.commit()
        self.roll_back()


class _RollBack(Exception):
    """Leaves a transaction without committing it."""
