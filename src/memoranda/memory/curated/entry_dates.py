"""When each entry was last written or confirmed, so that a person can look through the old ones.

The journal knows both. An entry that is still true is confirmed, which changes no file and adds a line to the journal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.journal import MemoryChange, next_change
from memoranda.memory.curated.operations import locate
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.write_result import MemoryRefusal, Origin
from memoranda.support.shorten import shorten_end

_PREVIEW_CHARS = 80


@dataclass(frozen=True, slots=True)
class DatedEntry:
    """An entry, and when it was last written or confirmed, in seconds since 1970."""

    target: Target
    entry: ScannedEntry
    checked_at: float


def date_entries(store: MemoryStore, target: Target) -> list[DatedEntry]:
    """The entries of a target in file order. One that the journal does not have is as old as its file."""
    view = store.view(target)
    if not view.entries:
        return []
    written, confirmed = _read_dates(store, target)
    unknown = store.storage.modified_at(target)
    return [
        DatedEntry(target, entry, max(written.get(entry.text, unknown), confirmed.get(entry.handle, 0.0)))
        for entry in view.entries
    ]


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


def _read_dates(store: MemoryStore, target: Target) -> tuple[dict[str, float], dict[str, float]]:
    """When each text was last written, and when each handle was last confirmed."""
    changes = [change for change in store.journal.changes() if change.target == target]
    void = {change.refers_to for change in changes if change.action == "void"}
    written: dict[str, float] = {}
    confirmed: dict[str, float] = {}
    for change in changes:
        if change.number in void or (at := _seconds(change)) is None:
            continue
        written |= dict.fromkeys(_written_texts(change), at)
        if change.action == "confirm":
            confirmed[change.note] = at
    return written, confirmed


def _written_texts(change: MemoryChange) -> Iterator[str]:
    """The texts that a change has written, without those that it only moved."""
    removed = {edit.before for edit in change.edits if edit.after is None}
    for edit in change.edits:
        if edit.after is not None and edit.after not in removed:
            yield edit.after


def _seconds(change: MemoryChange) -> float | None:
    """The time of a change; None if a person has edited the journal so that it is no time."""
    try:
        return datetime.fromisoformat(change.at.replace("Z", "+00:00")).astimezone(UTC).timestamp()
    except ValueError:
        return None
