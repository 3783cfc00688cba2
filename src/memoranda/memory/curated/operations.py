"""The operations on a list of entries (add, replace, remove, singly or as a batch), and the results of a write.

An entry such as "time zone: Europe/Berlin" has a key, which `Put` finds it by. A result is a value: a receipt, a
proposal that awaits approval, or a refusal.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from memoranda.memory.curated.memory_file import digest_prefix
from memoranda.memory.curated.relative_time import without_day
from memoranda.memory.curated.settings import Target
from memoranda.support.canonical_text import digest
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

MemoryRefusalReason = Literal[
    "invalid",  # the arguments cannot be used
    "disabled",  # this target, or all of memory, is switched off
    "blocked",  # the scanner found something
    "over_budget",
    "no_match",
    "ambiguous",
    "approval",  # only a person may write
    "drift",  # another program changed the file
    "conflict",  # an undo or edit no longer fits the current entries
    "unreadable",
    "undecodable",
    "symlink",
    "locked",
    "storage",  # the disk refused
]


@dataclass(frozen=True, slots=True)
class EntryEdit:
    """One entry that changes: `before` is None for a new entry, `after` for a removed one."""

    index: int
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class MemoryReceipt:
    """A write that succeeded, or that had nothing to do (then `edits` is empty and `change` is None)."""

    target: Target
    stored_in: Path
    message: str
    edits: tuple[EntryEdit, ...] = ()
    change: int | None = None
    backup: Path | None = None
    moved: tuple[str, ...] = ()
    """What went to notes, so that there was room."""


@dataclass(frozen=True, slots=True)
class AwaitsApproval:
    """A write that a person has to approve first."""

    target: Target
    proposal: str
    message: str


@dataclass(frozen=True, slots=True)
class MemoryRefusal:
    """A write that was refused; nothing was changed."""

    target: Target
    reason: MemoryRefusalReason
    message: str
    matches: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    backup: Path | None = None


MemoryWriteResult = MemoryReceipt | AwaitsApproval | MemoryRefusal


# A key is a short name, not a sentence.
_KEY = compile_later(r"([^:\n]{1,60}):\s")


@dataclass(frozen=True, slots=True)
class Add:
    """A new entry; `until` is its last day (see `facts.parse_until`), or "" if it has none."""

    content: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class Replace:
    """Another text for an entry; a reworded one keeps its last day, unless `until` says another."""

    old_text: str
    content: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class Put:
    """The value of a key: replaces the entry with that key, or adds one."""

    key: str
    content: str
    until: str = ""

    @property
    def text(self) -> str:
        """The entry, "key: value"; a content that repeats the key is the whole entry."""
        return self.content if key_of(self.content) == _plain_key(self.key) else f"{self.key}: {self.content}"

    def resolved(self, entries: Sequence[str]) -> "Add | Replace":
        """The operation that this is among these entries."""
        found = next((entry for entry in entries if key_of(entry) == _plain_key(self.key)), None)
        return Add(self.text, self.until) if found is None else Replace(found, self.text, self.until)


@dataclass(frozen=True, slots=True)
class Remove:
    old_text: str


Operation = Add | Replace | Remove | Put


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """The entries after a batch, and the edits that produce them; an index counts in the list before that edit."""

    entries: tuple[str, ...]
    edits: tuple[EntryEdit, ...]


@dataclass(frozen=True, slots=True)
class NoMatch:
    """No entry contains the text; `number` counts the operations of the batch from 1."""

    number: int
    similar: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several different entries contain the text."""

    number: int
    matches: tuple[str, ...]


def plan(entries: Sequence[str], operations: Sequence[Operation]) -> EntryPlan | NoMatch | Ambiguous:
    """Apply operations in order to a copy; stop at the first that matches no entry, or several."""
    current = list(entries)
    edits: list[EntryEdit] = []
    for number, item in enumerate(operations, start=1):
        operation = item.resolved(current) if isinstance(item, Put) else item
        if isinstance(operation, Add):
            if not _contains(current, operation.content):
                edits.append(EntryEdit(len(current), None, operation.content))
                current.append(operation.content)
            continue
        found = locate(current, operation.old_text)
        if isinstance(found, tuple):
            return Ambiguous(number, found)
        if found is None:
            return NoMatch(number, _similar(current, operation.old_text))
        edit = _edit_at(current, found, operation)
        if edit is not None:
            edits.append(edit)
            apply_edit(current, edit)
    return EntryPlan(tuple(current), tuple(edits))


def key_of(text: str) -> str:
    """The key of an entry in lower case: what stands before its first colon; "" if it has none."""
    found = _KEY.match(text)
    return _plain_key(found[1]) if found else ""


def value_of(entries: Sequence[str], key: str) -> str | None:
    found = next((entry for entry in entries if key_of(entry) == _plain_key(key)), None)
    return None if found is None else found.partition(":")[2].strip()


def _plain_key(key: str) -> str:
    return " ".join(key.split()).casefold()


def _edit_at(current: list[str], index: int, operation: Replace | Remove) -> EntryEdit | None:
    before = current[index]
    if isinstance(operation, Remove):
        return EntryEdit(index, before, None)
    if before == operation.content:
        return None
    # A copy of another entry would only waste space, so the two become one.
    becomes_copy = _contains(current[:index] + current[index + 1 :], operation.content)
    return EntryEdit(index, before, None if becomes_copy else operation.content)


def fits(entries: Sequence[str], edit: EntryEdit) -> bool:
    """Whether an edit can be carried out on these entries."""
    if edit.before is None:
        return edit.index <= len(entries)
    return edit.index < len(entries) and entries[edit.index] == edit.before


def apply_edit(entries: list[str], edit: EntryEdit) -> None:
    """Carry out one edit in place."""
    if edit.before is None:
        assert edit.after is not None
        entries.insert(edit.index, edit.after)
    elif edit.after is None:
        del entries[edit.index]
    else:
        entries[edit.index] = edit.after


def locate(entries: Sequence[str], old_text: str) -> int | tuple[str, ...] | None:
    """The index of the entry that matches; a tuple of the texts when several differ, None when none matches.

    A handle names its entry. Otherwise an entry that *is* the text wins over entries that contain it, and the first
    of equal entries wins. Composed and decomposed letters count as the same. The day that is shown after an entry may
    stand after the text.
    """
    prefix = digest_prefix(old_text)
    if prefix is not None:
        by_handle = [index for index, entry in enumerate(entries) if digest(entry).startswith(prefix)]
        if by_handle:
            return by_handle[0]
    comparable = [_comparable(entry) for entry in entries]
    for wanted in dict.fromkeys(map(_comparable, (old_text, without_day(old_text)))):
        if not wanted:
            return None
        if wanted in comparable:
            return comparable.index(wanted)
        matches = [index for index, entry in enumerate(comparable) if wanted in entry]
        if matches:
            break
    distinct = tuple(dict.fromkeys(entries[index] for index in matches))
    if len(distinct) > 1:
        return distinct
    return matches[0] if matches else None


def rewrite_edits(before: Sequence[str], after: Sequence[str]) -> tuple[EntryEdit, ...]:
    """The edits that turn one list of entries into another: what left, what came, and what stands for another.

    Entries stand for others only where as many came as left between entries that stay.
    """
    head, tail = shared_ends(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    # Most processes rewrite nothing.
    from difflib import SequenceMatcher  # noqa: PLC0415

    edits: list[EntryEdit] = []
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new).get_opcodes():
        left, came, place = old[start:end], new[new_start:new_end], head + new_start
        if tag == "replace" and len(left) == len(came):
            edits += [EntryEdit(place + i, *pair) for i, pair in enumerate(zip(left, came, strict=True))]
        elif tag != "equal":
            edits += [EntryEdit(place, text, None) for text in left]
            edits += [EntryEdit(place + i, None, text) for i, text in enumerate(came)]
    return tuple(edits)


def summarise_edits(sides: Iterable[tuple[str | None, str | None]], to_notes: int) -> str:
    """What edits did, given as their texts before and after: "2 added, 1 edited, 1 moved to notes"."""
    kinds = ["added" if before is None else "removed" if after is None else "edited" for before, after in sides]
    counts = {kind: kinds.count(kind) for kind in ("added", "edited", "removed")}
    moved = min(to_notes, counts["removed"])
    counts |= {"removed": counts["removed"] - moved, "moved to notes": moved}
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def shared_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many entries two lists share at their start, and how many of the rest at their end."""
    one, other = tuple(before), tuple(after)
    shortest = min(len(one), len(other))
    head = _shared_prefix(one, other, shortest)
    return head, min(_shared_prefix(one[::-1], other[::-1], shortest), shortest - head)


def _shared_prefix(one: tuple[str, ...], other: tuple[str, ...], limit: int) -> int:
    """How many of the first `limit` items agree; a binary search, because comparing slices is fast."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _contains(entries: Sequence[str], content: str) -> bool:
    if content in entries:
        return True
    # Only ASCII can be a composed form of ASCII, except for a few historical symbols.
    if content.isascii():
        return False
    return any(not entry.isascii() and _comparable(entry) == _comparable(content) for entry in entries)


def _similar(entries: Sequence[str], old_text: str) -> tuple[str, ...]:
    wanted = _comparable(old_text).casefold()
    return tuple(entry for entry in entries if wanted in _comparable(entry).casefold())


def _comparable(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
