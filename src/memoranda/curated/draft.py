"""A change that somebody wants, and whether it may be made of the entries that are there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoranda.curated import refusals
from memoranda.curated.entries import keeps_apart, size
from memoranda.curated.journal import Action
from memoranda.curated.operations import Ambiguous, NoMatch, Plan
from memoranda.curated.outcome import Origin, Refusal
from memoranda.curated.screening import Screening
from memoranda.curated.settings import Target

Planner = Callable[[Sequence[str]], Plan | NoMatch | Ambiguous | Refusal]


@dataclass(frozen=True, slots=True)
class Draft:
    """What to do with the entries that will be found under the lock.

    `seen` is the fingerprint of the file as a person looked at it: just that file, odd as it may be, is written over.
    `allow` names scanner findings that a person accepts for the new text.
    `restores` is text that stood there before: an undo brings it back whatever the scanner and the budget say of it
    today (what is blocked stays hidden).
    """

    target: Target
    action: Action
    origin: Origin
    plan: Planner
    done: str
    nothing: str = "Nothing changed."
    refers_to: int | None = None
    seen: str | None = None
    allow: frozenset[str] = frozenset()
    restores: frozenset[str] = frozenset()
    note: str = ""


def judge(draft: Draft, entries: Sequence[str], screening: Screening, limit: int) -> Plan | Refusal:
    """What a draft would make of these entries, or why it may not be made."""
    planned = draft.plan(entries)
    if isinstance(planned, NoMatch | Ambiguous):
        return refusals.unmatched(draft.target, planned)
    if isinstance(planned, Refusal) or not planned.edits:
        return planned
    written = {edit.after for edit in planned.edits if edit.after is not None}
    # The entries that were there read back as themselves, so it is enough that each new one does between any two.
    if not all(map(keeps_apart, written)):
        return refusals.delimiter_in_text(draft.target)
    new = {text for text in written - draft.restores if text not in entries}
    if found := screening.findings_in(planned.entries, new) - draft.allow:
        return refusals.blocked(draft.target, tuple(sorted(found)))
    after = size(planned.entries)
    if new and after > limit and after > size(entries):
        return refusals.over_budget(draft.target, after, limit)
    return planned
