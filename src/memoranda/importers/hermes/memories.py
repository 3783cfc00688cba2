"""The entries of a Hermes home's MEMORY.md and USER.md, on their way through the one write path of curated memory.

A plan goes through the same judgement as the write itself, so it says what will happen. What the budget has no room
for, and what the scanner objects to, is kept in a file beside the import's reports: listed, and never lost.
"""

from collections.abc import Sequence
from pathlib import Path

from memoranda.curated.entry_format import parse, serialise
from memoranda.curated.entry_scanner import EntryScanner
from memoranda.curated.operations import Add, plan
from memoranda.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.curated.store import MemoryStore
from memoranda.curated.write_request import WriteRequest, validate_request
from memoranda.curated.write_result import MemoryRefusal
from memoranda.errors import StorageError
from memoranda.importers.hermes.outcomes import ORIGIN, MigrationOutcome
from memoranda.importers.summary import REPORT_DIRECTORY
from memoranda.safety.redaction import Redactor
from memoranda.support.canonical_text import canonical
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.text_file import MissingFile, TextFile, read_text

_NO_ROOM = "there is no room for it"
_TRIES = 2


def left_entries_file(root: Path, target: Target) -> Path:
    """Where entries are kept that did not go into the memory of a home."""
    return root / REPORT_DIRECTORY / "hermes" / FILE_NAMES[target]


def plan_entries(home: Path, store: MemoryStore, *, rescan: bool = False) -> list[MigrationOutcome]:
    """What would become of every entry; those that were here and have been removed only come back `again`."""
    found: list[MigrationOutcome] = []
    for target in TARGETS:
        state = read_text(home / "memories" / FILE_NAMES[target])
        if isinstance(state, TextFile):
            found += _sorted_out(target, parse(state.text), store, rescan=rescan)
        elif not isinstance(state, MissingFile):
            found.append(MigrationOutcome(target, str(state.path), "unreadable", state.problem))
    return found


def keep_entries(planned: Sequence[MigrationOutcome], store: MemoryStore) -> list[MigrationOutcome]:
    """Add the new entries of each target as one change, which one undo takes back; what became of all of them."""
    done: list[MigrationOutcome] = []
    for target in TARGETS:
        ours = [outcome for outcome in planned if outcome.kind == target]
        new = [outcome.name for outcome in ours if outcome.status == "new"]
        refusal = _added(target, new, store) if new else None
        if refusal:
            ours = [
                MigrationOutcome(target, each.name, "left", refusal) if each.status == "new" else each for each in ours
            ]
        done += ours
    return done


def write_down(root: Path, outcomes: Sequence[MigrationOutcome]) -> list[Path]:
    """Keep the text of what was left, beside what was left before; the files."""
    files: list[Path] = []
    for target in TARGETS:
        left = [outcome.name for outcome in outcomes if outcome.kind == target and outcome.status == "left"]
        file = left_entries_file(root, target)
        state = read_text(file)
        before = parse(state.text) if isinstance(state, TextFile) else []
        kept = list(dict.fromkeys([*before, *left]))
        if left and kept != before:
            make_private_directory(file.parent)
            write_private(file, serialise(kept).encode("utf-8", "backslashreplace"))
        files += [file] if left else []
    return files


def _sorted_out(target: Target, entries: Sequence[str], store: MemoryStore, *, rescan: bool) -> list[MigrationOutcome]:
    if not store.settings.enabled(target):
        return [
            MigrationOutcome(target, entry, "left", f"{FILE_NAMES[target]} is switched off here") for entry in entries
        ]
    try:
        current = [entry.text for entry in store.view(target).entries]
    except StorageError as error:
        return [MigrationOutcome(target, entry, "left", str(error)) for entry in entries]
    gone = set() if rescan else _once_here(target, store)
    redactor, scanner = Redactor(), EntryScanner(store.directory / "allowed.json")
    found: dict[str, MigrationOutcome] = {}
    for entry in entries:
        # As it will be stored: without a credential that was in it, and in our form.
        text = canonical(redactor.text(entry)[0])
        if not text or text in found:
            continue
        if text in current:
            found[text] = MigrationOutcome(target, text, "there")
        elif text in gone:
            found[text] = MigrationOutcome(target, text, "gone", "it has been removed here since")
        elif reason := _refused(target, text, current, scanner, store.settings.limit(target)):
            found[text] = MigrationOutcome(target, text, "left", reason)
        else:
            current.append(text)
            found[text] = MigrationOutcome(target, text, "new")
    return list(found.values())


def _refused(target: Target, text: str, current: Sequence[str], scanner: EntryScanner, limit: int) -> str:
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


def _added(target: Target, texts: Sequence[str], store: MemoryStore) -> str:
    """Add entries as one change; why that could not be done, or nothing."""
    for _ in range(_TRIES):
        outcome = store.apply(target, [Add(text) for text in texts], ORIGIN)
        # Somebody else's change is recorded by the refusal, and the file is then known.
        if not isinstance(outcome, MemoryRefusal) or outcome.reason != "drift":
            break
    return outcome.message if isinstance(outcome, MemoryRefusal) else ""


def _once_here(target: Target, store: MemoryStore) -> set[str]:
    """Every entry that the journal has seen come."""
    changes = list(store.journal.changes())
    void = {change.refers_to for change in changes if change.action == "void"}
    lived = [change for change in changes if change.target == target and change.number not in void]
    return {edit.after for change in lived for edit in change.edits if edit.after is not None}
