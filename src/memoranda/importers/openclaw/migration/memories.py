"""Migrates the memories of a workspace (MEMORY.md, USER.md and the daily notes) to entries of curated memory.

A plan checks every entry as the write itself does, so it says exactly what will happen. Entries that do not fit or that
the scanner rejects are listed and written to a file, never lost.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.markdown_entries import parse_entries
from memoranda.importers.openclaw.migration.steps import AddEntries, MigrationStep, OmittedEntry, Status
from memoranda.importers.openclaw.migration.templates import is_template_entry
from memoranda.importers.openclaw.redaction import MigrationRedactor
from memoranda.memory.curated.entry_format import size
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.operations import Add, EntryPlan, plan
from memoranda.memory.curated.settings import FILE_NAMES, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.write_request import WriteRequest, validate_request
from memoranda.memory.curated.write_result import MemoryReceipt, MemoryRefusal, Origin
from memoranda.support.canonical_text import canonical
from memoranda.support.shorten import shorten_end
from memoranda.support.text_file import TextFile, read_text

ORIGIN = Origin("import", explicit=True)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_FILE_BYTES = 5_000_000
_MAX_PREVIEWS = 5
_MAX_ATTEMPTS = 3
NO_ROOM = "there is no room for it"


@dataclass(frozen=True, slots=True)
class CandidateEntry:
    """An entry in a file of the workspace."""

    text: str
    file: Path


@dataclass(slots=True)
class GatheredEntries:
    """Everything that was found for one target; `candidates` are in the order in which they are added."""

    candidates: list[CandidateEntry]
    omitted: list[OmittedEntry]
    skipped: Counter[str]
    problems: list[str]
    files: list[Path]


def gather(installation: Installation, target: Target, redactor: MigrationRedactor) -> GatheredEntries:
    """Read the files of a target: the long-term file first, then the daily notes, the newest first."""
    gathered = GatheredEntries([], [], Counter(), [], [])
    seen: set[str] = set()
    for file, day in _memory_files(installation, target):
        text = _read(file, gathered)
        if text is None:
            continue
        gathered.files.append(file)
        parsed = parse_entries(text, day)
        gathered.skipped.update(parsed.skipped)
        gathered.omitted += [
            OmittedEntry(redactor.text(entry), "it is superseded", file) for entry in parsed.superseded
        ]
        for entry in parsed.entries:
            if is_template_entry(entry):
                gathered.skipped["lines of OpenClaw's own template"] += 1
                continue
            # As it will be stored: redacted, and in canonical form.
            clean = canonical(redactor.text(entry))
            if " ".join(clean.split()) in seen:
                gathered.skipped["repetitions"] += 1
            elif clean:
                seen.add(" ".join(clean.split()))
                gathered.candidates.append(CandidateEntry(clean, file))
    return gathered


def plan_entries(
    gathered: GatheredEntries, target: Target, store: MemoryStore, history: MigrationHistory
) -> MigrationStep | None:
    """Plan the entries of a target; None when the workspace has no file for it."""
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
    planned_entries = _plan_candidates(gathered, target, store, history, current)
    new_omitted = [entry for entry in planned_entries.omitted if not history.was_omitted(target, entry.text)]
    work = AddEntries(target, tuple(planned_entries.added), tuple(new_omitted))
    planned = bool(planned_entries.added or new_omitted)
    details = {
        "existing_entries": len(current),
        "added_entries": len(planned_entries.added),
        "duplicate_entries": planned_entries.duplicates,
        "removed_here_since": planned_entries.removed_here,
        "left_entries": len(planned_entries.omitted),
        "without_room": sum(entry.reason == NO_ROOM for entry in planned_entries.omitted),
        "char_limit": store.settings.limit(target),
        "final_char_count": size([*current, *planned_entries.added]),
        "left_preview": [
            f"{_shorten(entry.text)} ({entry.reason})" for entry in planned_entries.omitted[:_MAX_PREVIEWS]
        ],
        "set_aside": dict(gathered.skipped),
        "source_files": [str(file) for file in gathered.files],
        "problems": gathered.problems,
    }
    status: Status = "planned" if planned else "error" if gathered.problems else "unchanged"
    reason = "; ".join(gathered.problems) or ("" if planned else "it contains nothing new")
    return MigrationStep(kind, source, destination, status, reason, details, work if planned else None)


def add_entries(work: AddEntries, store: MemoryStore) -> MemoryReceipt | MemoryRefusal | None:
    """Add the entries as one change, which one undo reverts; None when there are none."""
    if not work.entries:
        return None
    for _ in range(_MAX_ATTEMPTS):
        outcome = store.apply(work.target, [Add(text) for text in work.entries], ORIGIN)
        # The refusal records the outside change, so the next attempt succeeds.
        if not isinstance(outcome, MemoryRefusal) or outcome.reason != "drift":
            break
    assert isinstance(outcome, MemoryReceipt | MemoryRefusal), "an explicit write is never staged"
    return outcome


@dataclass(slots=True)
class _PlannedEntries:
    added: list[str]
    omitted: list[OmittedEntry]
    duplicates: int = 0
    removed_here: int = 0


def _plan_candidates(
    gathered: GatheredEntries, target: Target, store: MemoryStore, history: MigrationHistory, current: Sequence[str]
) -> _PlannedEntries:
    found = _PlannedEntries([], list(gathered.omitted))
    scanner = EntryScanner(store.storage.allowances)
    limit, entries = store.settings.limit(target), list(current)
    present = {" ".join(entry.split()) for entry in current}
    for candidate in gathered.candidates:
        if " ".join(candidate.text.split()) in present:
            found.duplicates += 1
        elif history.was_added(target, candidate.text):
            found.removed_here += 1
        elif size([*entries, candidate.text]) > limit:
            found.omitted.append(OmittedEntry(candidate.text, NO_ROOM, candidate.file))
        elif isinstance(verdict := _check_entry(target, candidate.text, entries, scanner, limit), MemoryRefusal):
            findings = ", ".join(verdict.findings)
            reason = f"the scanner found: {findings}" if findings else verdict.message.split(". ")[0]
            found.omitted.append(OmittedEntry(candidate.text, reason, candidate.file))
        else:
            entries.append(candidate.text)
            found.added.append(candidate.text)
    return found


def _check_entry(
    target: Target, text: str, entries: Sequence[str], scanner: EntryScanner, limit: int
) -> EntryPlan | MemoryRefusal:
    draft = WriteRequest(target, "add", ORIGIN, lambda current: plan(current, [Add(text)]), done="")
    return validate_request(draft, entries, scanner, limit)


def _memory_files(installation: Installation, target: Target) -> Iterator[tuple[Path, str]]:
    """Yield the files of a target, each with its day ("" for the long-term file)."""
    names = ("MEMORY.md", "memory.md") if target == "memory" else ("USER.md",)
    main = next((file for name in names if (file := installation.find(name)) and file.is_file()), None)
    if main is not None:
        yield main, ""
    notes = installation.find("memory") if target == "memory" else None
    if notes is not None and notes.is_dir():
        daily = sorted((file for file in notes.glob("*.md") if file.is_file()), reverse=True)
        for file in daily:
            day = _DAY.match(file.name)
            yield file, day[0] if day else file.stem


def _read(file: Path, gathered: GatheredEntries) -> str | None:
    if file.stat().st_size > _MAX_FILE_BYTES:
        gathered.problems.append(f"{file} is too large ({file.stat().st_size:,} bytes)")
        return None
    state = read_text(file)
    if not isinstance(state, TextFile):
        gathered.problems.append(f"{file}: {getattr(state, 'problem', 'it no longer exists')}")
        return None
    return state.text


def _shorten(text: str) -> str:
    return shorten_end(" ".join(text.split()), 80)
