"""One run of a synchronisation: what its steps share, and what it reports."""

import json
import secrets
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.transfer.row_versions import Row, SyncedSession
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import utc_timestamp
from memoranda.upkeep.sync.stamps import Clock, first_stamp, machine_of
from memoranda.upkeep.sync_state import Replaced, SyncState


@dataclass(slots=True)
class SyncReport:
    """What a run did: counts of what was sent and received, and what a person should know."""

    machine: str = ""
    sent: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)
    parts_written: int = 0
    conflicts: int = 0
    replaced: int = 0
    """How many changes of two machines met; `sync --log` shows them."""
    waiting: list[str] = field(default_factory=list)
    """Bundles that have not arrived completely."""
    overdue: list[str] = field(default_factory=list)
    """Bundles that should have arrived long ago, and what to do."""
    refused: list[str] = field(default_factory=list)
    """Bundles, or parts of the memory, that could not be used, and why."""
    notes: list[str] = field(default_factory=list)
    dry_run: bool = False

    def count(self, counts: dict[str, int], what: str, number: int = 1) -> None:
        """Add to one of the counts."""
        if number:
            counts[what] = counts.get(what, 0) + number


class Run:
    """The state of a run. What it changes in `rows` and `tables` is durable from the next `commit` on.

    `sender` and `sender_name` are the machine whose bundle is being read; empty while changes of this home are read.
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
        self.sender = self.sender_name = ""
        self.has_forgotten = False
        self.waits: dict[str, str] = {}
        """What has not arrived, by machine."""
        self.unlinked: set[str] = set()
        """The keys of sessions that have arrived, and of relatives of deleted ones, until they are linked."""
        self.tables = state.read()
        self.rows = self.versions.rows()
        self.sessions = self.versions.sessions()
        self.keys = {each.session_id: each.key for each in self.sessions.values() if each.session_id}
        self.number = int(self.versions.value("run") or 0)
        self._new_rows: dict[str, Row] = {}
        self._state = state
        self._use_machine(self.versions.value("machine"))

    def start(self) -> None:
        """Give the run its number, and this home an id among the machines at the first run."""
        if not self.machine:
            self.become_another()
        self.number += 1
        self.versions.set_value("run", str(self.number))
        self.tables.set_value("run", str(self.number))

    def become_another(self) -> None:
        """Give this home another id, which is random; its bundle will have everything, wherever that came from."""
        if self.machine:
            self.versions.set_value("everything", str(self.number + 1))
        machine = secrets.token_hex(6)
        self.versions.set_machine(machine, first_stamp(self.machine))
        self._use_machine(machine)

    def _use_machine(self, machine: str) -> None:
        self.machine = machine
        self.clock = Clock(machine, int(self.tables.value("clock", "0")))

    def must_rewrite(self) -> None:
        """Note that a text was forgotten or deleted that a bundle of this machine may contain.

        Durable before the change that is its reason has a stamp: a run that is killed would forget it.
        """
        if self.versions.value("rewrite") != str(self.number):
            self.versions.set_value("rewrite", str(self.number))

    def row(self, kind: str, name: str) -> Row | None:
        """Return the last change of a thing; None if it is unknown."""
        return self.rows.get(f"{kind}:{name}")

    def known(self, kind: str) -> dict[str, Row]:
        """Return the last changes of all things of a kind, by name."""
        prefix = f"{kind}:"
        return {name[len(prefix) :]: row for name, row in self.rows.items() if name.startswith(prefix)}

    def set_row(self, kind: str, name: str, row: Row) -> dict[str, Row]:
        """Set the last change of a thing; returns it for a caller that stores it with the thing itself."""
        new = {f"{kind}:{name}": row}
        self.rows |= new
        self._new_rows |= new
        return new

    def first_row(self, digest: str) -> Row:
        """Return the row of what was here before it was first synchronised."""
        return Row(first_stamp(self.machine), "", digest, self.number)

    def changed_row(self, before: Row | None, digest: str) -> Row:
        """Return the row of a thing that was changed or removed here; an empty digest says removed."""
        base = before.stamp if before else ""
        stamp = self.clock.change(base) if digest else self.clock.removal()
        return Row(stamp, base, digest, self.number)

    def sends(self, stamp: str, others: frozenset[str] | None) -> bool:
        """Return whether this machine sends what has a stamp; `others` are the machines that send their own changes."""
        machine = machine_of(stamp) if stamp else self.machine
        return machine == self.machine or (others is not None and machine not in others)

    def log_replaced(self, kind: str, name: str, lost: Any, stamp: str, *, undecided: bool = False) -> None:
        """Note what was changed on two machines without knowledge of each other, and was replaced."""
        self.report.replaced += 1
        self.tables.add_log(
            Replaced(0, kind, name, json.dumps(lost), stamp, self.sender_name, utc_timestamp(), int(undecided))
        )

    def commit(self) -> None:
        """Make everything durable so far."""
        self.versions.put_rows(self._new_rows)
        self._new_rows = {}
        self.tables.set_value("clock", str(self.clock.last))
        self.tables.save()

    def reload(self) -> None:
        """Read the tables again, after another part of the home may have changed them."""
        self.tables = self._state.read()

    def add_session(self, session: SyncedSession) -> None:
        """Note a session that all machines know by its key."""
        self.sessions[session.key] = session
        if session.session_id:
            self.keys[session.session_id] = session.key
