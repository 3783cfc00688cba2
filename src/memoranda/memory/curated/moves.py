"""Writes notes, and moves entries between targets and notes.

A move is one change of both targets, which one undo takes back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from memoranda.memory.curated import refusals
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.operations import (
    Add,
    Ambiguous,
    EntryEdit,
    EntryPlan,
    MemoryReceipt,
    MemoryRefusal,
    MemoryWriteResult,
    NoMatch,
    Operation,
    Put,
    Remove,
    locate,
    plan,
)
from memoranda.memory.curated.settings import NOTES, Target, file_name
from memoranda.memory.curated.store import MemoryStore, canonical_operation
from memoranda.memory.curated.writer import WriteRequest
from memoranda.safety.behaviour import changes_behaviour
from memoranda.support.canonical_text import canonical, unstorable_character
from memoranda.support.origin import Origin

_MAX_CHARS = 20_000
_NOT_UNDONE = " 'memory undo' does not take this back."


def write_notes(store: MemoryStore, operations: Sequence[Operation], origin: Origin) -> MemoryWriteResult:
    """Add notes of the project one works in, or of the agent's own, and change or remove any note."""
    owner = store.project or "memory"
    if store.notes is None:
        return MemoryRefusal(NOTES, "disabled", "There is no record that could keep notes. Nothing was written.")
    try:
        wanted = [canonical_operation(item) for item in operations]
    except ValueError as error:
        return MemoryRefusal(NOTES, "invalid", f"{error} Nothing was written.")
    owners = _owners_of_notes(store)
    planned = plan(list(owners), wanted)
    if isinstance(planned, NoMatch | Ambiguous):
        return refusals.unmatched(NOTES, planned)
    written = [edit.after for edit in planned.edits if edit.after is not None]
    displaced = [edit.before for edit in planned.edits if edit.before is not None]
    own = {note.text for note in store.notes.all() if not note.sources}
    if refusal := _refuse(store, written, origin, displaces_own=not own.isdisjoint(displaced)):
        return refusal
    until = {
        item.text if isinstance(item, Put) else item.content: item.until
        for item in wanted
        if not isinstance(item, Remove)
    }
    for edit in planned.edits:
        if edit.after is not None:
            store.notes.add(edit.after, owners.get(edit.before or "", owner), origin, until.get(edit.after, ""))
        if edit.before is not None:
            store.notes.remove(edit.before, owners[edit.before])
    # What the user says is theirs, although untrusted text said it before.
    for note in store.notes.all() if not origin.sources else ():
        if note.sources and note.text in until and note.text not in written:
            entry = replace(note.as_entry(), sources=())
            store.notes.add(note.text, note.owner, origin, until[note.text], entry, note.replaced)
    done = "Saved as a note: search finds it, and no prompt shows it." if written else "Removed the note."
    message = f"{done}{_NOT_UNDONE}"
    if not planned.edits:
        message = "There is such a note already."
    return MemoryReceipt(NOTES, Path(NOTES), message, planned.edits)


def _refuse(store: MemoryStore, texts: Sequence[str], origin: Origin, *, displaces_own: bool) -> MemoryRefusal | None:
    """Why notes are not written; `displaces_own` says whether a note of the user's own would be replaced or removed."""
    for text in texts:
        if unstorable := unstorable_character(text):
            return refusals.unstorable_text(NOTES, unstorable)
        if not text or len(text) > _MAX_CHARS:
            return MemoryRefusal(NOTES, "invalid", f"A note has 1 to {_MAX_CHARS:,} characters. Nothing was written.")
        if findings := EntryScanner(store.allowances).findings(text):
            return refusals.blocked(NOTES, findings)
    settings = store.settings
    untrusted = bool(origin.sources) and settings.untrusted_writes != "save"
    untrusted = untrusted and (displaces_own or any(map(changes_behaviour, texts)))
    if not origin.explicit and (settings.write_approval != "off" or untrusted):
        return MemoryRefusal(
            NOTES, "approval", "A person decides about this, and notes do not wait for one. Nothing was written. "
            "Save it in 'memory', where it awaits approval.",
        )  # fmt: skip
    return None


def move_entry(store: MemoryStore, source: Target, old_text: str, to: Target, origin: Origin) -> MemoryWriteResult:
    """Move the entry or note that contains a text to another target, with its facts; one undo takes it back."""
    if not origin.explicit and store.settings.write_approval != "off":
        return refusals.explicit_only(source)
    if store.notes is None and NOTES in (source, to):
        return MemoryRefusal(source, "disabled", "There is no record that could keep notes. Nothing was moved.")
    if source == to:
        return MemoryRefusal(source, "invalid", f"It is in {file_name(to)} already. Nothing was moved.")
    owners = _owners_of_notes(store) if source == NOTES else {}
    known = list(owners) if source == NOTES else [entry.text for entry in store.view(source).entries]
    found = locate(known, canonical(old_text))
    if not isinstance(found, int):
        problem = NoMatch(1, ()) if found is None else Ambiguous(1, found)
        return refusals.unmatched(source, problem)
    text, done = known[found], f"Moved to {file_name(to)}."
    note = store.notes.get(text, owners[text]) if store.notes is not None and owners else None
    sources = note.sources if note else store.journal.sources(source).get(handle(text), ())
    is_untrusted = bool(origin.sources) and not origin.explicit and store.settings.untrusted_writes != "save"
    if is_untrusted and not sources:
        message = "Only a person moves what the user said, after untrusted text was read. Nothing was moved."
        return MemoryRefusal(source, "approval", message)
    # What an entry comes from does not depend on who moves it.
    origin = replace(origin, sources=sources)
    if to == NOTES:
        requests = [_removal(source, text, origin, "Moved to notes: search finds it.", "to notes", {text: source})]
    elif source == NOTES:
        requests = [_addition(to, text, origin, done, "from notes", {text: owners[text]})]
    else:
        requests = [_addition(to, text, origin, done, f"from {source}", {})]
        requests.append(_removal(source, text, origin, done, f"to {to}", {}))
    outcome = store.commit_all(requests, make_room=True)
    return outcome if isinstance(outcome, MemoryRefusal) else outcome[0]


def _owners_of_notes(store: MemoryStore) -> dict[str, Target]:
    """The target that each note belongs to, by its text; of two equal notes, the one of the project one works in."""
    owner = store.project or "memory"
    notes = store.notes.all() if store.notes is not None else []
    return {note.text: note.owner for note in sorted(notes, key=lambda note: note.owner == owner)}


def _addition(
    target: Target, text: str, origin: Origin, done: str, note: str, from_notes: Mapping[str, Target]
) -> WriteRequest:
    return WriteRequest(
        target, "move", origin, lambda current: plan(current, [Add(text)]), done, note=note, until={text: ""},
        from_notes=from_notes,
    )  # fmt: skip


def _removal(
    target: Target, text: str, origin: Origin, done: str, note: str, to_notes: Mapping[str, Target]
) -> WriteRequest:
    def remove(current: Sequence[str]) -> EntryPlan:
        if text not in current:
            return EntryPlan(tuple(current), ())
        index = list(current).index(text)
        return EntryPlan((*current[:index], *current[index + 1 :]), (EntryEdit(index, text, None),))

    return WriteRequest(target, "move", origin, remove, done, note=note, to_notes=to_notes)
