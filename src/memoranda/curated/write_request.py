"""A change that somebody wants, and whether it may be made of the entries that are there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoranda.curated import refusals
from memoranda.curated.entry_format import reads_back_as_itself, size
from memoranda.curated.entry_scanner import EntryScanner
from memoranda.curated.journal import MemoryAction
from memoranda.curated.operations import Ambiguous, EntryPlan, NoMatch
from memoranda.curated.settings import Target
from memoranda.curated.write_result import MemoryRefusal, Origin

Planner = Callable[[Sequence[str]], EntryPlan | NoMatch | Ambiguous | MemoryRefusal]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What to do with the entries that will be found under the lock.

    `seen` is the fingerprint of the file as a person looked at it: just that file, odd as it may be, is written over.
    `allow` names scanner findings that a person accepts for the new text.
    `restores` is text that stood there before: an undo brings it back whatever the scanner and the budget say of it
    today (what is blocked stays hidden).
    """

    target: Target
    action: MemoryAction
    origin: Origin
    plan: Planner
    done: str
    nothing: str = "Nothing changed."
    refers_to: int | None = None
    seen: str | None = None
    allow: frozenset[str] = frozenset()
    restores: frozenset[str] = frozenset()
    note: str = ""


def validate_request(
    request: WriteRequest, entries: Sequence[str], scanner: EntryScanner, limit: int
) -> EntryPlan | MemoryRefusal:
    """What a request would make of these entries, or why it may not be made."""
    planned = request.plan(entries)
    if isinstance(planned, NoMatch | Ambiguous):
        return refusals.unmatched(request.target, planned)
    if isinstance(planned, MemoryRefusal) or not planned.edits:
        return planned
    written = {edit.after for edit in planned.edits if edit.after is not None}
    # The entries that were there read back as themselves, so it is enough that each new one does between any two.
    if not all(map(reads_back_as_itself, written)):
        return refusals.delimiter_in_text(request.target)
    new = {text for text in written - request.restores if text not in entries}
    if found := scanner.findings_in(planned.entries, new) - request.allow:
        return refusals.blocked(request.target, tuple(sorted(found)))
    after = size(planned.entries)
    if new and after > limit and after > size(entries):
        return refusals.over_budget(request.target, after, limit)
    return planned
