"""The history of curated memory: each line of the journal with the difference it made, and what can be undone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memoranda.memory.curated.journal import MemoryChange
from memoranda.memory.curated.settings import FILE_NAMES, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.viewer.curated.changes import read_changes
from memoranda.service.viewer.text_diff import DiffPart, diff_words
from memoranda.storage.files.journal import undone_numbers

PAGE_SIZE = 25
_MAX_EDITS = 100
_HANDLE = re.compile(r"entry:[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change; `edits` has the difference of each entry, and `more_edits` how many are left out.

    `can_undo` says that the page offers to undo it, `undone` that this was done. `allowed_handle` names the entry whose
    findings a person allowed, which can be revoked while it `is_allowed`.
    """

    change: MemoryChange
    file: str
    edits: tuple[tuple[DiffPart, ...], ...]
    more_edits: int
    can_undo: bool
    undone: bool
    allowed_handle: str = ""


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Changes, the newest first; `older` is the number before which the next page begins, 0 on the last page."""

    changes: tuple[ChangeRow, ...]
    older: int
    total: int


def read_history(store: MemoryStore, target: Target | None = None, before: int = 0) -> HistoryPage:
    """One page of the changes, those before a number if one is given."""
    everything = read_changes(store)
    matching = [change for change in everything if target in (None, change.target)]
    earlier = [change for change in matching if not before or change.number < before]
    shown = earlier[-PAGE_SIZE:][::-1]
    older = shown[-1].number if shown and len(earlier) > PAGE_SIZE else 0
    return HistoryPage(_rows(store, everything, shown), older, len(matching))


def read_change(store: MemoryStore, number: int) -> ChangeRow | None:
    """One change by its number."""
    everything = read_changes(store)
    found = [change for change in everything if change.number == number]
    return _rows(store, everything, found)[0] if found else None


def _rows(
    store: MemoryStore, everything: Sequence[MemoryChange], shown: Sequence[MemoryChange]
) -> tuple[ChangeRow, ...]:
    undone = undone_numbers(everything)
    revoked = _revoked_handles(everything)
    return tuple(_row(store, change, change.number in undone, revoked) for change in shown)


def _row(store: MemoryStore, change: MemoryChange, undone: bool, revoked: dict[str, int]) -> ChangeRow:
    def show(text: str | None) -> str | None:
        return None if text is None else store.visible_text(change.target, text)

    edits = tuple(diff_words(show(edit.before), show(edit.after)) for edit in change.edits[:_MAX_EDITS])
    allowed = _handle_in(change) if change.action == "allow" else ""
    return ChangeRow(
        change,
        FILE_NAMES[change.target],
        edits,
        max(0, len(change.edits) - _MAX_EDITS),
        bool(change.edits) and change.action != "found" and not undone,
        undone or bool(allowed and revoked.get(allowed, 0) > change.number),
        allowed if revoked.get(allowed, 0) < change.number else "",
    )


def _revoked_handles(changes: Sequence[MemoryChange]) -> dict[str, int]:
    """The entries whose allowance was revoked, with the number of the last such change."""
    return {handle: change.number for change in changes if change.action == "revoke" and (handle := _handle_in(change))}


def _handle_in(change: MemoryChange) -> str:
    found = _HANDLE.match(change.note)
    return found.group() if found else ""
