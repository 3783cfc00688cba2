"""A requested change to a memory file, and the checks that it must pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoranda.memory.curated import refusals
from memoranda.memory.curated.entry_format import reads_back_as_itself, size
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.journal import MemoryAction
from memoranda.memory.curated.operations import Ambiguous, EntryPlan, NoMatch
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.write_result import MemoryRefusal, Origin

Planner = Callable[[Sequence[str]], EntryPlan | NoMatch | Ambiguous | MemoryRefusal]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A change to the entries that the writer reads under the lock.

    `done` and `nothing` are the messages of the receipt when entries changed, and when none did.
    `seen` is the fingerprint of the file that a person looked at: the writer replaces exactly that file, whatever its
    formatting. `allow` names scanner findings that a person accepts for the new text. `restores` is text that existed
    before: an undo restores it although the scanner or the limit would refuse it today (blocked text stays hidden).
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


# An entry this many times over the limit is refused without being read.
_HOPELESS = 20


def validate_request(
    request: WriteRequest, entries: Sequence[str], scanner: EntryScanner, limit: int
) -> EntryPlan | MemoryRefusal:
    """Plan a request on these entries, or say why it is refused."""
    planned = request.plan(entries)
    if isinstance(planned, NoMatch | Ambiguous):
        return refusals.unmatched(request.target, planned)
    if isinstance(planned, MemoryRefusal) or not planned.edits:
        return planned
    written = {edit.after for edit in planned.edits if edit.after is not None}
    new = {text for text in written - request.restores if text not in entries}
    after = size(planned.entries)
    over_budget = bool(new) and after > limit and after > size(entries)
    if over_budget and after > _HOPELESS * limit:
        # Reading so much for attacks would take minutes, and it is refused in any case.
        return refusals.over_budget(request.target, after, limit)
    # The existing entries read back as themselves, so only the new ones need the check.
    if not all(map(reads_back_as_itself, written)):
        return refusals.delimiter_in_text(request.target)
    if found := scanner.findings_in(planned.entries, new) - request.allow:
        return refusals.blocked(request.target, tuple(sorted(found)))
    if over_budget:
        return refusals.over_budget(request.target, after, limit)
    return planned
