"""Migrates what a Hermes home has besides its sessions: the entries of MEMORY.md and USER.md, and its skills.

A plan checks every entry as the write itself does, so it says what will happen. Entries that do not fit or that the
scanner rejects are listed and kept in a file beside the import's reports, never lost. Skills have the same open format
as ours.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from memoranda.errors import StorageError
from memoranda.importers import migration
from memoranda.importers.migration import ORIGIN, entry_refusal, read_skill, skill_file_refusal
from memoranda.importers.summary import REPORT_DIRECTORY
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.forgotten_entries import is_forgotten
from memoranda.memory.curated.memory_file import parse, serialise
from memoranda.memory.curated.operations import MemoryRefusal
from memoranda.memory.curated.settings import TARGETS, Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills import content_checks
from memoranda.memory.skills.catalogue import find_skills
from memoranda.memory.skills.skill_text import SKILL_FILE
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.safety.redaction import Redactor
from memoranda.support.canonical_text import canonical
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_file import MissingFile, TextFile, read_text

Kind = str
"""A target of curated memory, or "skill"."""
Status = Literal[
    "new",  # it is, or would be, migrated
    "there",  # it is already here
    "gone",  # it was here, and has been removed since
    "conflict",  # something else has its name here
    "unreadable",  # the file itself, by its path
    "left",  # it does not fit, or may not be stored; it is written to a file
]


@dataclass(frozen=True, slots=True)
class MigrationOutcome:
    """One entry by its text or one skill by its name, with its status and the reason."""

    kind: Kind
    name: str
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SkillMigration:
    """One skill: its outcome, its texts by path, SKILL.md first, and the omitted files with the reason."""

    outcome: MigrationOutcome
    files: dict[str, str] = field(default_factory=dict)
    omitted_files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HermesMigration:
    """The outcomes of entries and skills; `written_files` contain the omitted entries."""

    entries: Sequence[MigrationOutcome] = ()
    skills: Sequence[SkillMigration] = ()
    written_files: Sequence[Path] = ()

    @property
    def outcomes(self) -> list[MigrationOutcome]:
        return [*self.entries, *(plan.outcome for plan in self.skills)]

    def with_status(self, *statuses: Status) -> list[MigrationOutcome]:
        """Return the outcomes with one of these statuses."""
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    def counts(self) -> dict[str, Counter[str]]:
        """Return the number of entries and skills by status."""
        found: dict[str, Counter[str]] = {"memory": Counter(), "user": Counter(), "skill": Counter()}
        for outcome in self.outcomes:
            found[outcome.kind][outcome.status] += 1
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the outcomes as JSON-like values, for a report or a program."""
        return {
            "counts": {kind: dict(counted) for kind, counted in self.counts().items()},
            "entries": [_as_json(outcome) for outcome in self.entries],
            "skills": [
                _as_json(plan.outcome) | ({"files_left": plan.omitted_files} if plan.omitted_files else {})
                for plan in self.skills
            ],
            "written_down": [str(file) for file in self.written_files],
        }


def home_of(path: Path) -> Path:
    """Return the home: the path itself, or the directory of a database."""
    return path.parent if path.is_file() else path


def plan_migration(
    home: Path, memory: MemoryStore | None, skills: SkillStore | None, *, rescan: bool = False
) -> HermesMigration:
    """Return what would be migrated; memories or skills are omitted when their store is None."""
    return HermesMigration(
        plan_entries(home, memory, rescan=rescan) if memory else (), plan_skills(home, skills) if skills else ()
    )


def apply_migration(
    root: Path, planned: HermesMigration, memory: MemoryStore | None, skills: SkillStore | None
) -> HermesMigration:
    """Migrate what was planned, and write omitted entries to files below `root`."""
    entries = add_entries(planned.entries, memory) if memory else []
    return HermesMigration(
        entries, create_skills(planned.skills, skills) if skills else (), write_omitted_entries(root, entries)
    )


def omitted_entries_file(root: Path, target: Target) -> Path:
    """Return the file with the entries that were not added to the memory of a home."""
    return root / REPORT_DIRECTORY / "hermes" / file_name(target)


def plan_entries(home: Path, store: MemoryStore, *, rescan: bool = False) -> list[MigrationOutcome]:
    """Plan every entry; those that were removed here are restored only by `rescan`."""
    # A writer that was killed before it changed the file leaves a journal line that would look like a removed entry.
    store.settle()
    found: list[MigrationOutcome] = []
    for target in TARGETS:
        state = read_text(home / "memories" / file_name(target))
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
        outcome = migration.add_entries(target, new, store) if new else None
        if isinstance(outcome, MemoryRefusal):
            plans = [
                MigrationOutcome(target, plan.name, "left", outcome.message) if plan.status == "new" else plan
                for plan in plans
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
            MigrationOutcome(target, entry, "left", f"{file_name(target)} is switched off here") for entry in entries
        ]
    try:
        current = [entry.text for entry in store.view(target).entries]
    except StorageError as error:
        return [MigrationOutcome(target, entry, "left", str(error)) for entry in entries]
    removed = set() if rescan else store.journal.recorded_entries(target)
    redactor, scanner = Redactor(), EntryScanner(store.allowances)
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
        elif reason := entry_refusal(target, text, current, scanner, store.settings.limit(target)):
            found[text] = MigrationOutcome(target, text, "left", reason)
        else:
            current.append(text)
            found[text] = MigrationOutcome(target, text, "new")
    return list(found.values())


def plan_skills(home: Path, store: SkillStore) -> list[SkillMigration]:
    catalogue = find_skills([home / "skills"])
    plans = [_plan_skill(skill.name, skill.directory, store) for skill in catalogue.skills]
    unusable = [problem for problem in catalogue.problems if problem.fatal]
    return [
        *plans,
        *(SkillMigration(MigrationOutcome("skill", str(skill.path), "left", skill.problem)) for skill in unusable),
    ]


def create_skills(plans: Sequence[SkillMigration], store: SkillStore) -> list[SkillMigration]:
    """Create the new skills, file by file; return all outcomes."""
    results = []
    for planned in plans:
        refusal = _create_skill(planned, store) if planned.outcome.status == "new" else ""
        outcome = MigrationOutcome("skill", planned.outcome.name, "left", refusal) if refusal else planned.outcome
        results.append(SkillMigration(outcome, planned.files, planned.omitted_files))
    return results


def _plan_skill(name: str, directory: Path, store: SkillStore) -> SkillMigration:
    redactor = Redactor()
    files, omitted_files = read_skill(directory, lambda text: redactor.text(text)[0])
    if not store.settings.enabled:
        return SkillMigration(
            MigrationOutcome("skill", name, "left", "skills are switched off here"), files, omitted_files
        )
    for file in list(files):
        if reason := skill_file_refusal(name, file, files[file], store):
            if file == SKILL_FILE:
                return SkillMigration(MigrationOutcome("skill", name, "left", reason), files, omitted_files)
            omitted_files[file] = reason
            del files[file]
    present = {file: _stored_text(store, name, file) for file in files}
    if present == files:
        return SkillMigration(MigrationOutcome("skill", name, "there"), files, omitted_files)
    # If only some files are missing, a crash interrupted an earlier migration; this one completes the skill.
    if any(text is not None and text != files[file] for file, text in present.items()):
        reason = "another skill here has this name"
        return SkillMigration(MigrationOutcome("skill", name, "conflict", reason), files, omitted_files)
    return SkillMigration(MigrationOutcome("skill", name, "new"), files, omitted_files)


def _stored_text(store: SkillStore, name: str, file: str) -> str | None:
    """Return a file of a skill in this home; None when there is none."""
    skill = store.catalogue().get(name)
    state = read_text(skill.directory / file) if skill and skill.root == store.root else None
    return content_checks.canonical_content(state.text) if isinstance(state, TextFile) else None


def _create_skill(plan: SkillMigration, store: SkillStore) -> str:
    """Write the files that are missing; return why that failed, or ""."""
    for file, text in plan.files.items():
        if _stored_text(store, plan.outcome.name, file) == text:
            continue
        if file == SKILL_FILE:
            outcome = store.create(plan.outcome.name, text, ORIGIN)
        else:
            outcome = store.write_file(plan.outcome.name, file, text, ORIGIN)
        if isinstance(outcome, SkillRefusal):
            return outcome.message
    return ""


def _as_json(outcome: MigrationOutcome) -> dict[str, str]:
    reason = {"reason": outcome.reason} if outcome.reason else {}
    return {"kind": outcome.kind, "name": outcome.name, "status": outcome.status, **reason}
