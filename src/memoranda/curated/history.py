"""Looking back and going back: the log, the difference since a change, undo, and purging for good."""

from collections.abc import Sequence
from dataclasses import dataclass

from memoranda.curated import refusals
from memoranda.curated.backups import backups_of
from memoranda.curated.journal import Change, restate
from memoranda.curated.operations import Plan, apply_edit
from memoranda.curated.outcome import Edit, Origin, Receipt, Refusal
from memoranda.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.curated.store import MemoryStore
from memoranda.curated.writer import Draft


@dataclass(frozen=True, slots=True)
class Difference:
    """What came and what went between two states of a target, in file order."""

    target: Target
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Purged:
    changes: int
    backups: int
    proposals: int


def log(store: MemoryStore, target: Target | None = None) -> list[Change]:
    """The changes to a memory directory, oldest first."""
    return [change for change in store.journal.changes() if target in (None, change.target)]


def difference_since(store: MemoryStore, target: Target, number: int) -> Difference:
    """What differs between the state before a change and the file as it is now, outside changes included."""
    before = store.journal.entries_after(target, number - 1)
    after = [entry.text for entry in store.view(target).entries]
    return Difference(target, tuple(_without(after, before)), tuple(_without(before, after)))


def undo(store: MemoryStore, number: int | None, origin: Origin) -> Receipt | Refusal:
    """Take one change back (by default the latest that was not taken back), as a new change of its own.

    The rest of the file may have moved on since; only the entries that the change touched must still be there.
    """
    changes = log(store)
    change = _latest_undoable(changes) if number is None else next((c for c in changes if c.number == number), None)
    if change is None or not change.edits:
        return refusals.nothing_to_undo(change.target if change else "memory", number)
    return store.commit(
        Draft(
            change.target,
            "undo",
            origin,
            lambda current: _reverse(change, current),
            done=f"Took change {change.number} ({change.action}) back in {FILE_NAMES[change.target]}.",
            nothing=f"Change {change.number} was taken back already.",
            refers_to=change.number,
        )
    )


def purge(store: MemoryStore, through: int | None = None) -> Purged:
    """Forget for good: journal lines up to a change, every backup and every rejected proposal."""
    with store.lock():
        changes = list(store.journal.changes())
        last = through if through is not None else max((change.number for change in changes), default=0)
        base = _restatement(store, [change for change in changes if change.number <= last])
        forgotten = store.journal.purge(last, base) if base else 0
        backups = [backup for target in TARGETS for backup in backups_of(store.path(target))]
        for backup in backups:
            backup.unlink()
        return Purged(forgotten, len(backups), store.proposals.purge_rejected())


def _restatement(store: MemoryStore, forgotten: Sequence[Change]) -> list[Change]:
    if not forgotten:
        return []
    newest = forgotten[-1]
    return [
        restate(newest, target, store.journal.entries_after(target, newest.number))
        for target in TARGETS
        if target in newest.heads
    ]


def _latest_undoable(changes: Sequence[Change]) -> Change | None:
    taken_back = {change.refers_to for change in changes if change.action == "undo"}
    for change in reversed(changes):
        if change.edits and change.action not in ("undo", "found") and change.number not in taken_back:
            return change
    return None


def _reverse(change: Change, current: Sequence[str]) -> Plan | Refusal:
    entries = list(current)
    edits: list[Edit] = []
    for edit in reversed(change.edits):
        if edit.after is None:
            assert edit.before is not None
            backwards = Edit(min(edit.index, len(entries)), None, edit.before)
        elif edit.after in entries:
            backwards = Edit(entries.index(edit.after), edit.after, edit.before)
        else:
            return refusals.no_longer_fits(change.target, change.number)
        edits.append(backwards)
        apply_edit(entries, backwards)
    return Plan(tuple(entries), tuple(edits))


def _without(entries: Sequence[str], others: Sequence[str]) -> list[str]:
    remaining = list(others)
    result: list[str] = []
    for entry in entries:
        if entry in remaining:
            remaining.remove(entry)
        else:
            result.append(entry)
    return result
