"""The memories of a workspace: MEMORY.md, USER.md and the daily notes, as entries of curated memory.

An entry goes through the same judgement as any other write. What is planned is therefore exactly what will be done:
what the budget has no room for, and what the scanner objects to, is listed and written down, never lost.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.curated.entry_format import size
from memoranda.curated.entry_scanner import EntryScanner
from memoranda.curated.operations import Add, EntryPlan, plan
from memoranda.curated.settings import FILE_NAMES, Target
from memoranda.curated.store import MemoryStore
from memoranda.curated.write_request import WriteRequest, validate_request
from memoranda.curated.write_result import MemoryReceipt, MemoryRefusal, Origin
from memoranda.errors import StorageError
from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.markdown_entries import parse_entries
from memoranda.importers.openclaw.migration.steps import AddEntries, MigrationStep, OmittedEntry, Status
from memoranda.importers.openclaw.migration.templates import is_template_entry
from memoranda.importers.openclaw.redaction import MigrationRedactor
from memoranda.support.canonical_text import canonical
from memoranda.support.shorten import shorten_end
from memoranda.support.text_file import TextFile, read_text

ORIGIN = Origin("import", explicit=True)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LARGEST_FILE = 5_000_000
_SHOWN = 5
_TRIES = 3
NO_ROOM = "there is no room for it"


@dataclass(frozen=True, slots=True)
class CandidateEntry:
    """An entry that a file of the workspace holds."""

    text: str
    file: Path


@dataclass(slots=True)
class GatheredEntries:
    """Everything of one target: entries in the order in which they are wanted, and what is none."""

    candidates: list[CandidateEntry]
    left: list[OmittedEntry]
    aside: Counter[str]
    problems: list[str]
    files: list[Path]


def gather(found: Installation, target: Target, redactor: MigrationRedactor) -> GatheredEntries:
    """Read the files of a target: the long-term file first, then the daily notes, the newest first."""
    gathered = GatheredEntries([], [], Counter(), [], [])
    seen: set[str] = set()
    for file, day in _files(found, target):
        text = _read(file, gathered)
        if text is None:
            continue
        gathered.files.append(file)
        parsed = parse_entries(text, day)
        gathered.aside.update(parsed.skipped)
        gathered.left += [OmittedEntry(redactor.text(entry), "it no longer holds", file) for entry in parsed.superseded]
        for entry in parsed.entries:
            if is_template_entry(entry):
                gathered.aside["lines of OpenClaw's own template"] += 1
                continue
            # As it will be stored: a credential that was in it is not, and its form is ours.
            clean = canonical(redactor.text(entry))
            if " ".join(clean.split()) in seen:
                gathered.aside["repetitions"] += 1
            elif clean:
                seen.add(" ".join(clean.split()))
                gathered.candidates.append(CandidateEntry(clean, file))
    return gathered


def plan_entries(
    gathered: GatheredEntries, target: Target, store: MemoryStore, history: MigrationHistory
) -> MigrationStep | None:
    """What would become of the entries of a target; None when there is nothing of it."""
    if not gathered.files and not gathered.problems:
        return None
    source = ", ".join(map(str, gathered.files[:3])) + (" …" if len(gathered.files) > 3 else "")
    destination = str(store.path(target))
    kind = "memory" if target == "memory" else "user-profile"
    if not store.settings.enabled(target):
        return MigrationStep(kind, source, destination, "skipped", f"{FILE_NAMES[target]} is switched off here.")
    try:
        current = [entry.text for entry in store.view(target).entries]
    except StorageError as error:
        return MigrationStep(kind, source, destination, "error", str(error))
    sorted_out = _sort_out(gathered, target, store, history, current)
    new_left = [left for left in sorted_out.left if not history.was_omitted(target, left.text)]
    work = AddEntries(target, tuple(sorted_out.added), tuple(new_left))
    planned = bool(sorted_out.added or new_left)
    details = {
        "existing_entries": len(current),
        "added_entries": len(sorted_out.added),
        "duplicate_entries": sorted_out.duplicates,
        "removed_here_since": sorted_out.gone,
        "left_entries": len(sorted_out.left),
        "without_room": sum(left.reason == NO_ROOM for left in sorted_out.left),
        "char_limit": store.settings.limit(target),
        "final_char_count": size([*current, *sorted_out.added]),
        "left_preview": [f"{_brief(left.text)} ({left.reason})" for left in sorted_out.left[:_SHOWN]],
        "set_aside": dict(gathered.aside),
        "source_files": [str(file) for file in gathered.files],
        "problems": gathered.problems,
    }
    status: Status = "planned" if planned else "error" if gathered.problems else "unchanged"
    reason = "; ".join(gathered.problems) or ("" if planned else "nothing of it is new")
    return MigrationStep(kind, source, destination, status, reason, details, work if planned else None)


def keep_entries(work: AddEntries, store: MemoryStore) -> MemoryReceipt | MemoryRefusal | None:
    """Add the entries as one change, which one undo takes back; None when there are none."""
    if not work.entries:
        return None
    for _ in range(_TRIES):
        outcome = store.apply(work.target, [Add(text) for text in work.entries], ORIGIN)
        # Somebody else's change is recorded by the refusal, and the file is then known.
        if not isinstance(outcome, MemoryRefusal) or outcome.reason != "drift":
            break
    assert isinstance(outcome, MemoryReceipt | MemoryRefusal), "an explicit wish is never staged"
    return outcome


@dataclass(slots=True)
class _SortedOut:
    added: list[str]
    left: list[OmittedEntry]
    duplicates: int = 0
    gone: int = 0


def _sort_out(
    gathered: GatheredEntries, target: Target, store: MemoryStore, history: MigrationHistory, current: Sequence[str]
) -> _SortedOut:
    found = _SortedOut([], list(gathered.left))
    scanner = EntryScanner(store.directory / "allowed.json")
    limit, entries = store.settings.limit(target), list(current)
    there = {" ".join(entry.split()) for entry in current}
    for candidate in gathered.candidates:
        if " ".join(candidate.text.split()) in there:
            found.duplicates += 1
        elif history.was_added(target, candidate.text):
            found.gone += 1
        elif size([*entries, candidate.text]) > limit:
            found.left.append(OmittedEntry(candidate.text, NO_ROOM, candidate.file))
        elif isinstance(judged := _judged(target, candidate.text, entries, scanner, limit), MemoryRefusal):
            why = ", ".join(judged.findings)
            reason = f"the scanner found: {why}" if why else judged.message.split(". ")[0]
            found.left.append(OmittedEntry(candidate.text, reason, candidate.file))
        else:
            entries.append(candidate.text)
            found.added.append(candidate.text)
    return found


def _judged(
    target: Target, text: str, entries: Sequence[str], scanner: EntryScanner, limit: int
) -> EntryPlan | MemoryRefusal:
    draft = WriteRequest(target, "add", ORIGIN, lambda current: plan(current, [Add(text)]), done="")
    return validate_request(draft, entries, scanner, limit)


def _files(found: Installation, target: Target) -> Iterator[tuple[Path, str]]:
    """The files of a target, each with the day it is about."""
    names = ("MEMORY.md", "memory.md") if target == "memory" else ("USER.md",)
    main = next((file for name in names if (file := found.find(name)) and file.is_file()), None)
    if main is not None:
        yield main, ""
    notes = found.find("memory") if target == "memory" else None
    if notes is not None and notes.is_dir():
        daily = sorted((file for file in notes.glob("*.md") if file.is_file()), reverse=True)
        for file in daily:
            day = _DAY.match(file.name)
            yield file, day[0] if day else file.stem


def _read(file: Path, gathered: GatheredEntries) -> str | None:
    if file.stat().st_size > _LARGEST_FILE:
        gathered.problems.append(f"{file} is too large ({file.stat().st_size:,} bytes)")
        return None
    state = read_text(file)
    if not isinstance(state, TextFile):
        gathered.problems.append(f"{file}: {getattr(state, 'problem', 'it is gone')}")
        return None
    return state.text


def _brief(text: str) -> str:
    return shorten_end(" ".join(text.split()), 80)
