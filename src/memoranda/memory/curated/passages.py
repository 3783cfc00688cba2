"""Finds a text in one directory of curated memory, and removes it: entries, journal, backups and proposals.

An entry that contains the text is removed as a whole. The journal keeps its lines, with a mark in place of the text, so
that other changes can still be undone.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.memory.curated.forgotten_entries import note_forgotten
from memoranda.memory.curated.operations import EntryPlan, MemoryRefusal, rewrite_edits
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest
from memoranda.storage.files.named_texts import NamedTexts
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import PERSON
from memoranda.support.text_matcher import TextMatcher

# The first attempt may be refused once, because another program has changed the file.
_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class CuratedPassage:
    """Where a text is: the file, what of it (entries, changes, a backup, a proposal), and how often."""

    path: Path
    what: str
    count: int


def matching_entries(store: MemoryStore, matcher: TextMatcher) -> list[tuple[Target, str]]:
    found = []
    for target in store.storage.targets():
        try:
            found += [(target, entry.text) for entry in store.view(target).entries if matcher.found_in(entry.text)]
        except StorageError:
            # Unreadable as entries; it is searched as bytes.
            continue
    return found


def find_passages(store: MemoryStore, matcher: TextMatcher) -> list[CuratedPassage]:
    """Every place in the directory that has the text."""
    entries = matching_entries(store, matcher)
    found = [
        CuratedPassage(store.path(target), "entries", count)
        for target in store.storage.targets()
        if (count := sum(target == other for other, _ in entries))
    ]
    lines = [line for line in store.journal.raw_lines() if _line_without(line, matcher) != line]
    found += [CuratedPassage(store.directory / "journal.jsonl", "changes", len(lines))] if lines else []
    backups, proposals = store.storage.backups, store.storage.proposals
    for name in backups.names():
        if count := matcher.count(_decode(_read(backups, name))):
            found.append(CuratedPassage(backups.path(name), "backup", count))
    return found + [
        CuratedPassage(proposals.path(name), "proposal", 1)
        for name in proposals.names()
        if _proposal_has(_read(proposals, name), matcher)
    ]


def forget_passages(store: MemoryStore, matcher: TextMatcher) -> list[str]:
    """Remove the text from the directory; returns why a file could not be changed. Can be repeated after a crash."""
    if not store.storage.exists():
        return []
    with store.exclusive():
        note_forgotten(store.storage.forgotten, _recorded_entries(store, matcher))
    problems = [problem for target in store.storage.targets() if (problem := _remove_entries(store, target, matcher))]
    with store.exclusive():
        # After the entries: the line that says what was removed is rewritten with the others.
        store.journal.rewrite(lambda line: _line_without(line, matcher))
        store.storage.remove_leftovers()
        backups, proposals = store.storage.backups, store.storage.proposals
        for name in backups.names():
            replaced = matcher.replace(_decode(_read(backups, name)))
            if replaced.count:
                backups.write(name, str(replaced.value).encode("utf-8", "surrogateescape"))
        for name in proposals.names():
            if _proposal_has(_read(proposals, name), matcher):
                proposals.remove(name)
    return problems


def _recorded_entries(store: MemoryStore, matcher: TextMatcher) -> set[str]:
    """Every entry, current or past, that contains the text."""
    sides = (side for change in store.journal.changes() for edit in change.edits for side in (edit.before, edit.after))
    return {text for _, text in matching_entries(store, matcher)} | {
        side for side in sides if side is not None and matcher.found_in(side)
    }


def _remove_entries(store: MemoryStore, target: Target, matcher: TextMatcher) -> str:
    """Remove the entries of a target that contain the text; returns why that failed, or ""."""
    if not any(found == target for found, _ in matching_entries(store, matcher)):
        return ""

    def plan(current: Sequence[str]) -> EntryPlan:
        kept = tuple(entry for entry in current if not matcher.found_in(entry))
        return EntryPlan(kept, rewrite_edits(current, kept))

    request = WriteRequest(target, "remove", PERSON, plan, done=f"Removed from {file_name(target)}.", note="forgotten")
    for _ in range(_ATTEMPTS):
        # Below the store, whose callback would send the removed text to an external memory.
        outcome = store.commit_unannounced(request)
        if not isinstance(outcome, MemoryRefusal):
            return ""
    return outcome.message


def _proposal_has(raw: bytes, matcher: TextMatcher) -> bool:
    try:
        return bool(matcher.replace_value(json.loads(raw)).count)
    except (ValueError, RecursionError):
        return matcher.found_in(_decode(raw))


def _line_without(line: bytes, matcher: TextMatcher) -> bytes | None:
    """A line of the journal without the text; None for a damaged line that has it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None if matcher.found_in(_decode(line)) else line
    replaced = matcher.replace_value(value)
    if not replaced.count:
        return line
    return json.dumps(replaced.value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _read(texts: NamedTexts, name: str) -> bytes:
    try:
        return texts.read(name)
    except FileNotFoundError:
        return b""


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
