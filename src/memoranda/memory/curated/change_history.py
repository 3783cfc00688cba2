"""The history of curated memory: the log, the difference since a change, undo, purging, and confirming entries.

An entry that is still true is confirmed, which changes no file and adds a line to the journal.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial

from memoranda.memory.curated import refusals
from memoranda.memory.curated.approval_queue import Proposal, encode_operation
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.journal import MemoryChange, next_change, restate
from memoranda.memory.curated.memory_file import handle, list_backups
from memoranda.memory.curated.operations import (
    EntryEdit,
    EntryPlan,
    MemoryReceipt,
    MemoryRefusal,
    apply_edit,
    locate,
    rewrite_edits,
)
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest
from memoranda.storage.files.journal import find_undoable, undone_numbers
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin
from memoranda.support.shorten import shorten_end
from memoranda.support.text_matcher import MARK
from memoranda.support.tool import JsonObject

_PREVIEW_CHARS = 80


@dataclass(frozen=True, slots=True)
class EntryDifference:
    """The entries that were added and removed between two states of a target, in file order."""

    target: Target
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PurgedMemory:
    changes: int
    backups: int
    proposals: int


def log(store: MemoryStore, target: Target | None = None) -> list[MemoryChange]:
    """The changes to a memory directory, oldest first."""
    return [change for change in store.journal.changes() if target in (None, change.target)]


def change_data(store: MemoryStore, change: MemoryChange) -> JsonObject:
    """A change as JSON, with its texts as they may be shown."""
    edits = [
        {side: _shown(store, change.target, text) for side, text in (("before", edit.before), ("after", edit.after))}
        for edit in change.edits
    ]
    return {name: value for name, value in asdict(change).items() if name != "heads"} | {"edits": edits}


def proposal_data(store: MemoryStore, proposal: Proposal) -> JsonObject:
    """A proposal as JSON, with its texts as they may be shown."""
    operations = [
        {name: text if name == "action" else _shown(store, proposal.target, text) for name, text in fields.items()}
        for fields in map(encode_operation, proposal.operations)
    ]
    replaced = [_shown(store, proposal.target, text) for text in proposal.replaced]
    return asdict(proposal) | {"operations": operations, "replaced": replaced, "sources": list(proposal.sources)}


def _shown(store: MemoryStore, target: Target, text: str | None) -> str | None:
    return None if text is None else store.visible_text(target, text)


def difference_since(store: MemoryStore, target: Target, number: int) -> EntryDifference:
    """What differs between the state before a change and the file as it is now, outside changes included."""
    found = [change.number for change in log(store, target) if change.action == "found"]
    # The journal has no entries from before its first "found" line.
    before = store.journal.entries_after(target, max([number - 1, *(first for first in found if first <= number)]))
    old, new = Counter(before), Counter(entry.text for entry in store.view(target).entries)
    return EntryDifference(target, tuple((new - old).elements()), tuple((old - new).elements()))


def difference_data(store: MemoryStore, number: int | None) -> JsonObject | None:
    """The entries `added` and `removed` since a change (by default the latest), by target; None if there is no such."""
    last = store.journal.last()
    since = number or (last.number if last else 1)
    if number is not None and (last is None or number > last.number):
        return None
    found = [difference_since(store, target, since) for target in store.storage.targets()]
    return {
        each.target: {
            "added": [store.visible_text(each.target, entry) for entry in each.added],
            "removed": [store.visible_text(each.target, entry) for entry in each.removed],
        }
        for each in found
    }


def undo(store: MemoryStore, number: int | None, origin: Origin) -> MemoryReceipt | MemoryRefusal:
    """Undo one change (by default the latest that was not undone), as a new change of its own.

    Changes that were made together are undone together, with the notes that they made. Other entries may have changed
    since; only the entries that the change wrote must still exist. A change whose text was forgotten is refused.
    """
    changes = [change for change in log(store) if number is not None or store.settings.enabled(change.target)]
    change = find_undoable(changes, number, lambda change: bool(change.edits) and change.action != "found")
    if change is None:
        target: Target = next((change.target for change in changes if change.number == number), "memory")
        return refusals.nothing_to_undo(target, number)
    if any(has_forgotten_text(each) for each in changes if _group(each) == _group(change)):
        return refusals.forgotten_since(change.target, change.number)
    undone = undone_numbers(changes)
    together = [each for each in changes if _group(each) == _group(change) and each.number not in undone]
    outcome = store.commit_all([_undo_request(each, origin) for each in reversed(together)])
    if isinstance(outcome, MemoryRefusal):
        return outcome
    return replace(outcome[-1], message=" ".join(receipt.message for receipt in reversed(outcome)))


def has_forgotten_text(change: MemoryChange) -> bool:
    """Whether a text of the change was forgotten: undoing it would write the mark in place of the text."""
    return any(MARK in side for edit in change.edits for side in (edit.before, edit.after) if side)


def _group(change: MemoryChange) -> int:
    """The number of the first of the changes that were made together with this one."""
    return change.group or change.number


def _undo_request(change: MemoryChange, origin: Origin) -> WriteRequest:
    before = {handle(edit.before): edit.before for edit in change.edits if edit.before is not None}
    after = {handle(edit.after): edit.after for edit in change.edits if edit.after is not None}
    return WriteRequest(
        change.target,
        "undo",
        origin,
        partial(_reverse, change),
        done=f"Undid change {change.number} ({change.action}) in {file_name(change.target)}.",
        refers_to=change.number,
        restores=frozenset(before.values()),
        to_notes={after[name]: owner for name, owner in change.from_notes.items() if name in after},
        from_notes={before[name]: owner for name, owner in change.to_notes.items() if name in before},
    )


def undo_outside_change(store: MemoryStore, target: Target, origin: Origin) -> MemoryReceipt | MemoryRefusal:
    """Write back the entries that the journal has of a file that something else changed or deleted.

    The outside change is recorded first, with the file as it was found, so that this can be undone, too.
    """
    state, last, entries = store.storage.read(target, None), store.journal.last(), store.journal.entries_after(target)
    known = last.heads.get(target) if last is not None else None
    if last is None or entries is None or known in (None, getattr(state, "fingerprint", known)):
        return refusals.nothing_to_undo(target, None)

    def restore(current: Sequence[str]) -> EntryPlan:
        return EntryPlan(tuple(entries), rewrite_edits(current, entries))

    request = WriteRequest(
        target,
        "undo",
        origin,
        restore,
        done=f"Wrote back to {file_name(target)} what the journal has of it.",
        refers_to=last.number + 1,
        seen=getattr(state, "fingerprint", None),
        restores=frozenset(entries),
    )
    return store.commit(request)


def purge(store: MemoryStore, through: int | None = None) -> PurgedMemory:
    """Delete the history for good: the lines of the journal, all backups and all rejected proposals.

    With a number, purge deletes only the lines up to that change.
    """
    with store.exclusive():
        purged = [change for change in log(store) if through is None or change.number <= through]
        base = _restatement(store, purged[-1]) if purged else []
        count = store.journal.purge(purged[-1].number if purged else 0, base)
        if through is not None:
            return PurgedMemory(count, 0, 0)
        store.storage.remove_leftovers()
        texts = store.storage.backups
        backups = [name for target in store.storage.targets() for name in list_backups(texts, file_name(target))]
        for name in backups:
            texts.remove(name)
        return PurgedMemory(count, len(backups), store.proposals.purge_rejected())


def _restatement(store: MemoryStore, newest: MemoryChange) -> list[MemoryChange]:
    """Lines with the entries of each file after a change, which replace all lines up to it."""
    found = [(target, store.journal.entries_after(target, newest.number)) for target in store.storage.targets()]
    # Entries that damaged lines made unknown are recorded when the file is next written.
    known = {str(target) for target, entries in found if entries is not None}
    heads = {target: head for target, head in newest.heads.items() if target in known}
    lines = []
    for target, entries in found:
        if entries is not None and target in heads:
            facts, sources = store.facts(target), store.journal.sources(target)
            until = {each.entry.handle: each.until for each in facts if each.until}
            history = {each.entry.handle: each.history for each in facts}
            lines.append(restate(newest, target, entries, heads, sources, until, history))
    return lines


def _reverse(change: MemoryChange, current: Sequence[str]) -> EntryPlan | MemoryRefusal:
    entries = list(current)
    edits: list[EntryEdit] = []
    for edit in reversed(change.edits):
        if edit.after is None:
            assert edit.before is not None
            reverse_edit = EntryEdit(min(edit.index, len(entries)), None, edit.before)
        elif edit.after in entries:
            reverse_edit = EntryEdit(entries.index(edit.after), edit.after, edit.before)
        else:
            return refusals.changed_since(change.target, change.number)
        edits.append(reverse_edit)
        apply_edit(entries, reverse_edit)
    return EntryPlan(tuple(entries), tuple(edits))


def confirm_entry(
    store: MemoryStore, targets: Sequence[Target], old_text: str, origin: Origin
) -> ScannedEntry | MemoryRefusal:
    """Note in the journal that an entry is still true; `old_text` is a unique part of it, or its handle."""
    with store.exclusive():
        entries = [(target, entry) for target in targets for entry in store.view(target).entries]
        found = locate([entry.text for _, entry in entries], old_text)
        if found is None:
            return MemoryRefusal(targets[0], "no_match", "No entry contains that text. Nothing was confirmed.")
        if isinstance(found, tuple):
            shown = {entry.text: entry.visible_text for _, entry in entries}
            message = f"{len(found)} different entries contain that text. Nothing was confirmed."
            previews = tuple(shorten_end(shown[text], _PREVIEW_CHARS) for text in found)
            return MemoryRefusal(targets[0], "ambiguous", message, matches=previews)
        target, entry = entries[found]
        line = next_change(store.journal.last(), target, "confirm", origin, (), None, note=entry.handle)
        store.journal.append([line])
    return entry
