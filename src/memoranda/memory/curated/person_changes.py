"""What only a person does to a file of curated memory: edit or empty the whole of it, and accept scanner findings."""

from collections.abc import Sequence

from memoranda.memory.curated import refusals
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.journal import MemoryAction, next_change
from memoranda.memory.curated.operations import EntryPlan, MemoryWriteResult, rewrite_edits
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest
from memoranda.support.canonical_text import canonical, unstorable_character
from memoranda.support.origin import Origin


def edit_file(
    store: MemoryStore, target: Target, seen: str, entries: Sequence[str], origin: Origin, allow: frozenset[str]
) -> MemoryWriteResult:
    """Replace the entries that a person saw (`seen` is the fingerprint of the view) with others."""
    unstorable = next(filter(None, map(unstorable_character, entries)), None)
    if unstorable:
        return refusals.unstorable_text(target, unstorable)
    wanted = tuple(canonical(entry) for entry in entries)
    return store.commit(
        WriteRequest(
            target, "edit", origin,
            lambda current: EntryPlan(wanted, rewrite_edits(current, wanted)),
            done=f"Saved {file_name(target)} as edited.",
            seen=seen,
            allow=allow,
        )
    )  # fmt: skip


def empty_file(store: MemoryStore, target: Target, origin: Origin) -> MemoryWriteResult:
    """Remove every entry of a target; the journal keeps them."""
    name = file_name(target)
    return store.commit(
        WriteRequest(
            target, "reset", origin,
            lambda current: EntryPlan((), rewrite_edits(current, ())),
            done=f"Removed every entry of {name}. 'memoranda memory undo' restores them.",
            nothing=f"{name} has no entries.",
        )
    )  # fmt: skip


def allow_findings(store: MemoryStore, target: Target, handle: str, origin: Origin) -> ScannedEntry | None:
    """Accept all findings of the blocked entry that a handle names; None when there is no such entry."""
    entry = next((item for item in store.view(target).entries if item.handle == handle and item.findings), None)
    if entry is not None:
        with store.exclusive():
            store.allowances.allow([entry.text], entry.findings, origin)
            _journal_note(store, target, "allow", origin, f"{handle}: {', '.join(entry.findings)}")
    return entry


def revoke_findings(store: MemoryStore, target: Target, handle: str, origin: Origin) -> ScannedEntry | None:
    """Revoke what was allowed for the entry that a handle names; None when nothing was."""
    entry = next((item for item in store.view(target).entries if item.handle == handle), None)
    with store.exclusive():
        if entry is None or not store.allowances.revoke(entry.text):
            return None
        _journal_note(store, target, "revoke", origin, handle)
    return entry


def _journal_note(store: MemoryStore, target: Target, action: MemoryAction, origin: Origin, note: str) -> None:
    store.journal.append([next_change(store.journal.last(), target, action, origin, (), None, note=note)])
