"""Conflicts in curated memory: what two machines changed differently, and what a person decides."""

import json
from contextlib import closing
from pathlib import Path
from typing import Literal

from memoranda.errors import SyncError
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.operations import MemoryReceipt, MemoryRefusal
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import PERSON
from memoranda.upkeep.sync.entries import (
    apply_text,
    collect_entries,
    current_entries,
    entries_of,
    entry_digest,
    set_entry,
)
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.synchroniser import LOCK_NAME
from memoranda.upkeep.sync_state import SyncState, Thing
from memoranda.upkeep.sync_versions import Version, first_version

Choice = Literal["mine", "theirs", "both"]
_LOCK_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Conflict:
    """An entry with its text here and on another machine; None where it was removed, or could not be added."""

    number: int
    target: Target
    mine: str | None
    theirs: str | None
    machine: str


def list_conflicts(root: Path, db: SessionDB, memory: MemoryStore) -> list[Conflict]:
    """What waits for a person."""
    with closing(SyncState(root)) as state:
        if not state.exists():
            return []
        return [conflict for conflict, _, _ in _read(Run(root, db, memory, state, lambda _: None))]


def resolve_conflict(
    root: Path, db: SessionDB, memory: MemoryStore, number: int, choice: Choice
) -> MemoryReceipt | MemoryRefusal | None:
    """Decide a conflict; the other machines get the decision at their next runs. None if no file changed.

    Raises SyncError if there is no such conflict. If the write is refused, the conflict stays.
    """
    with FileLock(root / LOCK_NAME, _LOCK_TIMEOUT), closing(SyncState(root)) as state:
        run = Run(root, db, memory, state, lambda _: None)
        outcome = _resolve(run, number, choice)
        run.commit()
    return outcome


def _resolve(run: Run, number: int, choice: Choice) -> MemoryReceipt | MemoryRefusal | None:
    run.start()
    # The entry may have changed since the last run.
    collect_entries(run)
    found = next((each for each in _read(run) if each[0].number == number), None)
    if found is None:
        raise SyncError(f"There is no conflict {number}. 'memoranda sync conflicts' lists them.")
    conflict, uid, theirs = found
    known = entries_of(run.tables, conflict.target).get(uid)
    ours = known.version if known is not None else first_version("")
    wanted = (
        conflict.mine
        if choice == "mine"
        else conflict.theirs
        if choice == "theirs"
        else conflict.mine or conflict.theirs
    )
    outcome: MemoryReceipt | MemoryRefusal | None = None
    if wanted != conflict.mine:
        done = f"Took over the entry of {conflict.machine} in {file_name(conflict.target)}."
        outcome = apply_text(run, conflict.target, conflict.mine, wanted, PERSON, done)
    elif choice == "both" and conflict.theirs is not None and conflict.theirs != conflict.mine:
        done = f"Added the entry of {conflict.machine} to {file_name(conflict.target)}."
        outcome = apply_text(run, conflict.target, None, conflict.theirs, PERSON, done)
    if isinstance(outcome, MemoryRefusal):
        return outcome
    digest = "" if wanted is None else entry_digest(wanted)
    replaced = ours.replaced | theirs.replaced | {ours.name, theirs.name}
    version = Version(run.clock.name(), digest, replaced)
    set_entry(run.tables, conflict.target, uid, Thing(version, run.number))
    run.tables.drop_conflict(conflict.target, uid)
    # An entry that was added beside it is a new one, and must not take the place of another.
    collect_entries(run)
    return outcome


def _read(run: Run) -> list[tuple[Conflict, str, Version]]:
    found = []
    for row in run.tables.conflicts():
        known = entries_of(run.tables, row.target).get(row.uid)
        texts = {entry_digest(text): text for text in current_entries(run.memory, row.target)}
        mine = texts.get(known.version.digest) if known is not None else None
        digest = "" if row.theirs is None else entry_digest(row.theirs)
        conflict = Conflict(row.number, row.target, mine, row.theirs, row.machine)
        found.append((conflict, row.uid, Version(row.version, digest, frozenset(json.loads(row.replaced)))))
    return found
