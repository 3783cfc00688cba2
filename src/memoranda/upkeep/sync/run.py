"""One run of a synchronisation: what its steps share, and what it reports."""

import secrets
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.sync_state import SyncState, Thing
from memoranda.upkeep.sync_versions import Clock


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
    """The state of a run. What it changes in `tables` is durable from the next `commit` on.

    `bundle` is the bundle that is being read; empty while changes of this home are collected.
    """

    def __init__(
        self, root: Path, db: SessionDB, memory: MemoryStore, state: SyncState, progress: Callable[[str], None]
    ) -> None:
        self.root = root
        self.db = db
        self.versions = db.synced_rows.versions
        self.memory = memory
        self.progress = progress
        self.report = SyncReport()
        self.bundle = ""
        self.sender = ""
        self.has_forgotten = False
        self.waits: dict[str, str] = {}
        """What has not arrived, by machine and number of the bundle."""
        self.unordered: set[str] = set()
        """Sessions that have received messages, until `order_sessions`."""
        self.unlinked: set[str] = set()
        """Sessions that have arrived, and relatives of deleted ones, until `link_sessions`."""
        self.tables = state.read()
        self.number = 0
        self._must_rewrite = False
        self._state = state
        self._use_machine(self.versions.machine())

    def start(self) -> None:
        """Give the run its number, and this home an id among the machines at the first run."""
        if not self.machine:
            self.become_another()
        self._must_rewrite = self.versions.must_rewrite()
        self.number = self.versions.start_run()
        self.tables.set_value("run", str(self.number))

    def become_another(self) -> None:
        """Give this home another id, which is random."""
        machine = secrets.token_hex(6)
        self.versions.set_machine(machine)
        self._use_machine(machine)

    def _use_machine(self, machine: str) -> None:
        self.machine = machine
        self.clock = Clock(machine, int(self.tables.value("clock", "0")))

    @property
    def must_rewrite(self) -> bool:
        """Whether a text was forgotten or deleted that a bundle of this machine may contain."""
        return self._must_rewrite

    @must_rewrite.setter
    def must_rewrite(self, value: bool) -> None:
        if value != self._must_rewrite:
            # Durable before the change that is its reason has a version: a run that is killed would forget it.
            self.versions.set_rewrite(value)
        self._must_rewrite = value

    def next_thing(self, before: Thing, digest: str, *, forgotten: bool = False) -> Thing:
        """The version of a thing that was changed here."""
        return Thing(self.clock.next_version(before.version, digest), self.number, "", forgotten)

    def commit(self) -> None:
        """Make everything durable so far."""
        self.tables.set_value("clock", str(self.clock.last))
        self.tables.save()

    def reload(self) -> None:
        """Read the tables again, after another part of the home may have changed them."""
        self.tables = self._state.read()
