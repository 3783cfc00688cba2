"""Migrates the entries of a Hermes home's MEMORY.md and USER.md to curated memory.

A plan checks every entry as the write itself does, so it says what will happen. Entries that do not fit or that the
scanner rejects are listed and kept in a file beside the import's reports, never lost.
"""

from collections.abc import Sequence
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.importers.hermes.outcomes import ORIGIN, MigrationOutcome
from memoranda.importers.summary import REPORT_DIRECTORY
from memoranda.memory.curated.entry_format import parse, serialise
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.forgotten_entries import is_forgotten
from memoranda.memory.curated.operations import Add, plan
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.write_request import WriteRequest, validate_request
from memoranda.memory.curated.write_result import MemoryRefusal
from memoranda.safety.redaction import Redactor
from memoranda.support.canonical_text import canonical
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.text_file import MissingFile, TextFile, read_text

_NO_ROOM = "there is no room for it"
_MAX_ATTEMPTS = 2


def omitted_entries_file(root: Path, target: Target) -> Path:
    """Return the file with the entries that were not added to the memory of a home."""
    return root / REPORT_DIRECTORY / "hermes" / FILE_NAMES[target]


def plan_entries(home: Path, store: MemoryStore, *, rescan: bool = False) -> list[MigrationOutcome]:
    """Plan every entry; those that were removed here are restored only by `rescan`."""
    # A writer that was killed before it changed the file leaves a journal line that would look like a removed entry.
    store.settle()
    found: list[MigrationOutcome] = []
    for target in TARGETS:
        state = read_text(home / "memories" / FILE_NAMES[target])
        if isinstance(state, TextFile):
            found += _plan_target(target, parse(state.text), store, rescan=rescan)
        elif not isinstance(state, MissingFile):
            found.append(MigrationOutcome(target, str(state.path), "unreadable", state.problem))
    return found


def add_entries(planned: Sequence[MigrationOutcome], store: MemoryStore) -> list[MigrationOutcome]:
    """Add the new entries of each target as one change, which one undo reverts; return all outcomes."""
    outcomes: list[MigrationOutcome] = []
    for target in TARGETS:
        plans = [plan for plan in planned if plan.kind == target]
        new = [plan.name for plan in plans if plan.status == "new"]
        refusal = _add(target, new, store) if new else None
        if refusal:
            plans = [
                MigrationOutcome(target, plan.name, "left", refusal) if plan.status == "new" else plan for plan in plans
            ]
        outcomes += plans
    return outcomes


def write_omitted_entries(root: Path, outcomes: Sequence[MigrationOutcome]) -> list[Path]:
    """Add the omitted entries to those of earlier imports; return the files."""
    files: list[Path] = []
    for target in TARGETS:
        left = [outcome.name for outcome in outcomes if outcome.kind == target and outcome.status == "left"]
        file = omitted_entries_file(root, target)
        state = read_text(file)
        before = parse(state.text) if isinstance(state, TextFile) else []
        kept = list(dict.fromkeys([*before, *left]))
        if left and kept != before:
            make_private_directory(file.parent)
            write_private(file, serialise(kept).encode("utf-8", "backslashreplace"))
        files += [file] if left else []
    return files


def _plan_target(target: Target, entries: Sequence[str], store: MemoryStore, *, rescan: bool) -> list[MigrationOutcome]:
    if not store.settings.enabled(target):
        return [
            MigrationOutcome(target, entry, "left", f"{FILE_NAMES[target]} is switched off here") for entry in entries
        ]
    try:
        current = [entry.text for entry in store.view(target).entries]
    except StorageError as error:
        return [MigrationOutcome(target, entry, "left", str(error)) for entry in entries]
    removed = set() if rescan else store.journal.recorded_entries(target)
    redactor, scanner = Redactor(), EntryScanner(store.storage.allowances)
    found: dict[str, MigrationOutcome] = {}
    for entry in entries:
        # As it will be stored: redacted, and in canonical form.
        text = canonical(redactor.text(entry)[0])
        if not text or text in found:
            continue
        if text in current:
            found[text] = MigrationOutcome(target, text, "there")
        elif text in removed or (not rescan and is_forgotten(store.storage.forgotten, text)):
            found[text] = MigrationOutcome(target, text, "gone", "it has been removed here since")
        elif reason := _refusal_reason(target, text, current, scanner, store.settings.limit(target)):
            found[text] = MigrationOutcome(target, text, "left", reason)
        else:
            current.append(text)
            found[text] = MigrationOutcome(target, text, "new")
    return list(found.values())


def _refusal_reason(target: Target, text: str, current: Sequence[str], scanner: EntryScanner, limit: int) -> str:
    verdict = validate_request(
        WriteRequest(target, "add", ORIGIN, lambda entries: plan(entries, [Add(text)]), done=""),
        current,
        scanner,
        limit,
    )
    if not isinstance(verdict, MemoryRefusal):
        return ""
    if verdict.reason == "over_budget":
        return _NO_ROOM
    return f"the scanner found: {', '.join(verdict.findings)}" if verdict.findings else verdict.message


def _add(target: Target, texts: Sequence[str], store: MemoryStore) -> str:
    """Add entries as one change; return why that failed, or ""."""
    for _ in range(_MAX_ATTEMPTS):
        outcome = store.apply(target, [Add(text) for text in texts], ORIGIN)
        # The refusal records the outside change, so the next attempt succeeds.
        if not isinstance(outcome, MemoryRefusal) or outcome.reason != "drift":
            break
    return outcome.message if isinstance(outcome, MemoryRefusal) else ""
