"""What two machines changed without knowledge of each other: the log of it, and what a person decides about entries."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from memoranda.errors import SyncError
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.operations import MemoryReceipt, MemoryRefusal
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.transfer.row_versions import Row
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import PERSON
from memoranda.upkeep.sync.entries import Entries, apply_text, entry_digest, text_here
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.synchroniser import LOCK_NAME, collect
from memoranda.upkeep.sync_state import Replaced, SyncState

Choice = Literal["mine", "theirs", "both"]
_LOCK_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Conflict:
    """An entry with its text here and the other one; None where it was removed, or could not be added."""

    number: int
    target: Target
    mine: str | None
    theirs: str | None
    machine: str


def read_log(root: Path) -> list[dict[str, Any]]:
    """Return what synchronisations have replaced, the oldest first."""
    with closing(SyncState(root)) as state:
        rows = state.read().log() if state.exists() else []
    return [
        {"number": row.number, "kind": row.kind, "name": row.name, "lost": json.loads(row.lost), "machine": row.machine,
         "at": row.at}
        for row in rows
    ]  # fmt: skip


def list_conflicts(root: Path, db: SessionDB, memory: MemoryStore) -> list[Conflict]:
    """Return the entries of which a person may decide."""
    with closing(SyncState(root)) as state:
        if not state.exists():
            return []
        return [conflict for conflict, _ in _read(Run(root, db, memory, state, lambda _: None))]


def resolve_conflict(
    root: Path, db: SessionDB, memory: MemoryStore, number: int, choice: Choice
) -> MemoryReceipt | MemoryRefusal | None:
    """Decide a conflict; the other machines get the decision at their next runs. None if no file changed.

    Raises SyncError if there is no such conflict. If the write is refused, the conflict stays.
    """
    with FileLock(root / LOCK_NAME, _LOCK_TIMEOUT), closing(SyncState(root)) as state:
        run = Run(root, db, memory, state, lambda _: None)
        run.start()
        # The entry may have changed since the last run.
        collect(run)
        outcome = _resolve(run, number, choice)
        run.commit()
    return outcome


def _resolve(run: Run, number: int, choice: Choice) -> MemoryReceipt | MemoryRefusal | None:
    found = next((each for each in _read(run) if each[0].number == number), None)
    if found is None:
        raise SyncError(f"There is no conflict {number}. 'memoranda sync conflicts' lists them.")
    conflict, replaced = found
    mine, theirs = conflict.mine, conflict.theirs
    wanted = mine if choice == "mine" else theirs if choice == "theirs" else mine or theirs
    outcome: MemoryReceipt | MemoryRefusal | None = None
    if wanted != mine:
        done = f"Took over the entry of {conflict.machine} in {file_name(conflict.target)}."
        outcome = apply_text(run.memory, conflict.target, (mine, wanted), PERSON, done, {})
    elif choice == "both" and theirs is not None:
        done = f"Added the entry of {conflict.machine} to {file_name(conflict.target)}."
        outcome = apply_text(run.memory, conflict.target, (None, theirs), PERSON, done, {})
    if isinstance(outcome, MemoryRefusal):
        return outcome
    before = run.row(Entries.name, replaced.name)
    known = max(before.stamp if before else "", replaced.stamp)
    digest = "" if wanted is None else entry_digest(wanted)
    row = run.changed_row(Row(known, "", "", 0), digest)
    run.set_row(Entries.name, replaced.name, row)
    run.tables.decide(replaced.name, row.stamp)
    # An entry that was added beside it is a new one, and must not take the place of another.
    collect(run)
    return outcome


def _read(run: Run) -> Iterator[tuple[Conflict, Replaced]]:
    for row in run.tables.log():
        if row.undecided:
            mine, lost = text_here(run, row.name), json.loads(row.lost)
            theirs = None if lost is None else lost.get("text")
            if mine != theirs:
                target = row.name.rpartition(" ")[0]
                yield Conflict(row.number, target, mine, theirs, row.machine), row
