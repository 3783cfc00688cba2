"""The journal of curated memory: every applied change to one user's memory, one per line.

A line of `journal.jsonl`, or a row of `curated_journal`, says who made a change, when, in which session, and each entry
before and after. A change is in the journal *before* the memory file is replaced, so no applied change is ever missing.
A writer that is killed between the two steps leaves its staged file behind, and the next writer marks the change as
void (see `storage`). In tables, both steps are one transaction.

`heads` has the fingerprint of every memory file after the change. So the last line is enough to see whether another
program has changed a file since, and replaying the edits restores the entries that Memoranda last knew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from itertools import chain
from typing import Any, Literal, get_args

from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.operations import EntryEdit, apply_edit, fits, key_of
from memoranda.memory.curated.settings import Target, is_target
from memoranda.storage.files.journal import Journal, JournalLines, undone_numbers
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import MEMORANDA, Origin, utc_timestamp

MemoryAction = Literal[
    "add", "replace", "remove", "batch", "edit", "reset", "undo",
    "found",  # entries that existed before the journal started
    "outside",  # another program changed the file
    "allow",  # a person accepted a scanner finding
    "revoke",  # a person revoked that
    "confirm",  # a person said that an entry is still true; `note` is its handle
    "until",  # an entry got another last day
    "curate",  # a run of the curator that changed nothing; `note` says what it found
    "move",  # an entry left for another target, or came from it; `note` names it
    "void",  # the change named by `refers_to` was journalled but never reached the file
]  # fmt: skip

APPROVED = "approved by a person"
"""The note of a change that a person approved."""

KEYED = "under a key"
"""The note of a change that saved values under keys."""

# These only bring back what was there, or record what a file has.
_SAYS_NOTHING = frozenset({"undo", "found", "outside"})

_ACTIONS = frozenset(get_args(MemoryAction))


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One line of the journal; `refers_to` is the number of the change that an undo or a void cancels.

    `sources` says of entries, by their handles, what untrusted text may have suggested them (`Origin.sources`): nothing
    if the user has said them since. `until` has their last days. `facts` says what was known about them before they
    arrived from another machine, or before the history was purged (`EntryFacts.history`). `to_notes` and `from_notes`
    name entries that became notes and notes that became entries, with the target that the note belongs to. `message` is
    the user's message that the change followed. Changes that were made together have the number of the first as their
    `group`.
    """

    number: int
    target: Target
    action: MemoryAction
    actor: str
    session: str
    edits: tuple[EntryEdit, ...]
    heads: dict[str, str]
    at: str = field(default_factory=utc_timestamp)
    refers_to: int | None = None
    note: str = ""
    sources: dict[str, list[str]] = field(default_factory=dict)
    until: dict[str, str] = field(default_factory=dict)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    to_notes: dict[str, str] = field(default_factory=dict)
    from_notes: dict[str, str] = field(default_factory=dict)
    message: int | None = None
    group: int | None = None


# How a line begins to name sources, and last days.
_SOURCES = b'"sources":{"'
_UNTIL = b'"until":{"'


def next_change(
    last: MemoryChange | None,
    target: Target,
    action: MemoryAction,
    origin: Origin,
    edits: tuple[EntryEdit, ...],
    head: str | None,
    **more: Any,
) -> MemoryChange:
    """The change that follows `last`; a head of None leaves the file's fingerprint as it was."""
    heads = dict(last.heads) if last else {}
    if head is not None:
        heads[target] = head
    number = last.number + 1 if last else 1
    written = [edit.after for edit in edits if edit.after is not None] if origin.sources else []
    sources = {handle(text): list(origin.sources) for text in written}
    more = {"message": origin.message} | more | {"sources": sources | more.get("sources", {})}
    return MemoryChange(number, target, action, origin.actor, origin.session, edits, heads, **more)


class MemoryJournal(Journal[MemoryChange]):
    """The journal of one user's memory. Appending and purging need its lock."""

    OPTIONAL_FIELDS = frozenset({"sources", "until", "facts", "to_notes", "from_notes", "message", "group"})

    def __init__(self, lines: JournalLines) -> None:
        super().__init__(lines, _from_record, [item.name for item in fields(MemoryChange)])

    def newest(self) -> list[MemoryChange]:
        """The newest change, with those that were made together with it; nothing if it is void."""
        last = self.last()
        if last is None or last.action == "void" or last.target not in last.heads:
            return []
        return [last] if last.group is None else [change for change in self.changes() if change.group == last.group]

    def heads_before(self, number: int) -> dict[str, str]:
        """The fingerprints of the files before a change."""
        before = [earlier for earlier in self.changes() if earlier.number < number]
        return before[-1].heads if before else {}

    def voids_of(self, changes: Sequence[MemoryChange]) -> list[MemoryChange]:
        """The lines that cancel some of the newest changes: each file has the fingerprint from before them."""
        last, before = self.last(), self.heads_before(changes[0].group or changes[0].number)
        assert last is not None
        heads, lines = dict(last.heads), []
        for number, change in enumerate(changes, start=last.number + 1):
            heads.pop(change.target, None)
            heads |= {target: head for target, head in before.items() if target == change.target}
            lines.append(
                MemoryChange(
                    number, change.target, "void", MEMORANDA.actor, "", (), dict(heads), refers_to=change.number
                )
            )
        return lines

    def sources(self, target: Target) -> dict[str, tuple[str, ...]]:
        """The untrusted sources of a target's entries, by their handles; what a person said or approved has none.

        What is said without untrusted sources is the user's own from then on. An undo brings back what was known.
        """
        # Most journals name no sources, and need not be parsed for them.
        if not self._lines.contains(_SOURCES):
            return {}
        found: dict[str, tuple[str, ...]] = {}
        left: dict[int, dict[str, tuple[str, ...]]] = {}
        for change in [each for each in self.changes() if each.target == target]:
            gone = [handle(edit.before) for edit in change.edits if edit.before is not None]
            left[change.number] = {name: found.get(name, ()) for name in gone}
            known = left.get(change.refers_to or 0, {}) if change.action == "undo" else {}
            if change.action not in _SAYS_NOTHING:
                known = {handle(edit.after): () for edit in change.edits if edit.after is not None}
            found |= known
            found |= {name: () if change.note == APPROVED else tuple(names) for name, names in change.sources.items()}
        return {name: names for name, names in found.items() if names}

    def keys(self, target: Target) -> frozenset[str]:
        """The keys under which values of a target were saved, but not from untrusted text; a mere colon is no key."""
        keyed = [
            edit.after
            for change in self.changes()
            for edit in change.edits
            if change.target == target
            and (change.note == APPROVED or not any(change.sources.values()))
            # Nothing but a key lets an added text replace another.
            and (change.note == KEYED or (change.action == "add" and edit.before))
        ]
        return frozenset(key for text in keyed if text and (key := key_of(text)))

    def settled(self, target: Target) -> frozenset[str]:
        """The handles of what an undo brought back or took away: a person has decided about it."""
        changes = [change for change in self.changes() if change.target == target]
        undone = undone_numbers(changes)
        undos = [change for change in changes if change.action == "undo" and change.number not in undone]
        sides = [side for change in undos for edit in change.edits for side in (edit.before, edit.after)]
        return frozenset(handle(side) for side in sides if side is not None)

    def has_last_days(self) -> bool:
        """Whether any entry ever had a last day; most journals need not be parsed for it."""
        return self._lines.contains(_UNTIL)

    def recorded_entries(self, target: Target) -> set[str]:
        """Every entry that a target ever had, as far as the journal goes back."""
        changes = [change for change in self.changes() if change.target == target]
        return {edit.after for change in changes for edit in change.edits if edit.after is not None}

    def entries_after(self, target: Target, number: int | None = None) -> list[str] | None:
        """The entries of a target after change `number`, or after all; None when damaged lines make that unknown."""
        entries: list[str] | None = []
        for change in self.changes():
            if number is not None and change.number > number:
                break
            if change.target == target:
                entries = _replay(change, entries)
        return entries


def _replay(change: MemoryChange, entries: list[str] | None) -> list[str] | None:
    if change.action == "found":
        entries = []
    if entries is None:
        return None
    for edit in change.edits:
        if not fits(entries, edit):
            return None
        apply_edit(entries, edit)
    return entries


def restate(
    change: MemoryChange,
    target: Target,
    entries: Sequence[str],
    heads: dict[str, str],
    sources: Mapping[str, Sequence[str]],
    until: Mapping[str, str],
    facts: Mapping[str, dict[str, str]],
) -> MemoryChange:
    """A "found" line with the entries, under the same number, which replaces everything up to `change`."""
    handles = [*map(handle, entries)]
    known = {key: list(sources[key]) for key in handles if key in sources}
    last_days = {key: until[key] for key in handles if key in until}
    brought = {key: facts[key] for key in handles if key in facts}
    edits = tuple(EntryEdit(index, None, entry) for index, entry in enumerate(entries))
    note = "history purged"
    return replace(
        change, target=target, action="found", edits=edits, heads=heads, refers_to=None, note=note, sources=known,
        until=last_days, facts=brought, to_notes={}, from_notes={}, message=None, group=None,
    )  # fmt: skip


def _from_record(record: dict[str, Any]) -> MemoryChange | None:
    edits = tuple(EntryEdit(**edit) for edit in record.pop("edits"))
    change = MemoryChange(**record, edits=edits)
    return change if _is_valid(change) else None


def _is_valid(change: MemoryChange) -> bool:
    """Whether a line, which a person may have edited, has the types that the rest of the program relies on."""
    if not is_target(change.target) or change.action not in _ACTIONS:
        return False
    if not _all_of(dict, [change.heads, change.sources, change.facts]) or not _all_of(list, change.sources.values()):
        return False
    by_handle = [change.until, change.to_notes, change.from_notes, *change.facts.values()]
    if not _all_of(dict, by_handle):
        return False
    texts: list[object] = [change.actor, change.session, change.at, change.note, *change.heads.values()]
    texts += chain.from_iterable(change.sources.values())
    texts += chain.from_iterable([each.values() for each in by_handle if each])
    numbers: list[int] = [change.number, change.refers_to or 0, change.message or 0, change.group or 0]
    sides: list[Any] = []
    for edit in change.edits:
        sides += [side for side in (edit.before, edit.after) if side is not None] or [None]
        numbers.append(edit.index)
    return (
        _all_of(str, texts)
        and _all_of(str, sides)
        and _are_encodable(sides)
        and _all_of(int, numbers)
        and min(numbers) >= 0
    )


def _all_of(wanted: type, values: Iterable[object]) -> bool:
    return {wanted}.issuperset(map(type, values))


def _are_encodable(texts: Sequence[str]) -> bool:
    """Whether texts can be written; a NUL can, which another program may have written into the file."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True
