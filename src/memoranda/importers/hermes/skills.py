"""Migrates the skills of a Hermes home, which have the same open format as ours."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memoranda.importers.hermes.outcomes import ORIGIN, MigrationOutcome
from memoranda.memory.skills import content_checks
from memoranda.memory.skills.catalogue import find_skills
from memoranda.memory.skills.names import SKILL_FILE, file_problem
from memoranda.memory.skills.store import SkillStore, list_skill_files
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.safety.redaction import Redactor
from memoranda.support.text_file import TextFile, read_text


@dataclass(frozen=True, slots=True)
class SkillMigration:
    """One skill: its outcome, its texts by path, SKILL.md first, and the omitted files with the reason."""

    outcome: MigrationOutcome
    files: dict[str, str] = field(default_factory=dict)
    omitted_files: dict[str, str] = field(default_factory=dict)


def plan_skills(home: Path, store: SkillStore) -> list[SkillMigration]:
    """Plan every skill of a home."""
    catalogue = find_skills([home / "skills"])
    plans = [_plan(skill.name, skill.directory, store) for skill in catalogue.skills]
    unusable = [problem for problem in catalogue.problems if problem.fatal]
    return [
        *plans,
        *(SkillMigration(MigrationOutcome("skill", str(skill.path), "left", skill.problem)) for skill in unusable),
    ]


def create_skills(plans: Sequence[SkillMigration], store: SkillStore) -> list[SkillMigration]:
    """Create the new skills, file by file; return all outcomes."""
    results = []
    for plan in plans:
        refusal = _create(plan, store) if plan.outcome.status == "new" else ""
        outcome = MigrationOutcome("skill", plan.outcome.name, "left", refusal) if refusal else plan.outcome
        results.append(SkillMigration(outcome, plan.files, plan.omitted_files))
    return results


def _plan(name: str, directory: Path, store: SkillStore) -> SkillMigration:
    files, omitted_files = _read_skill(directory)
    if not store.settings.enabled:
        return SkillMigration(
            MigrationOutcome("skill", name, "left", "skills are switched off here"), files, omitted_files
        )
    for file in list(files):
        if reason := _refusal_reason(name, file, files[file], store):
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


def _read_skill(directory: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of a skill as they would be stored, and the files that are not text."""
    redactor = Redactor()
    texts: dict[str, str] = {}
    omitted_files: dict[str, str] = {}
    for file in (SKILL_FILE, *list_skill_files(directory)):
        state = read_text(directory / file)
        if problem := file_problem(file):
            omitted_files[file] = problem
        elif isinstance(state, TextFile):
            texts[file] = content_checks.canonical_content(redactor.text(state.text)[0])
        else:
            omitted_files[file] = getattr(state, "problem", "it no longer exists")
    return texts, omitted_files


def _refusal_reason(name: str, file: str, text: str, store: SkillStore) -> str:
    limit = store.settings.skill_char_limit if file == SKILL_FILE else store.settings.file_char_limit
    refusal = content_checks.check_content(name, file, text, "", limit)
    refusal = refusal or content_checks.scan_new_passages(name, text, "", store.screen_text, frozenset())
    return refusal.message if refusal else ""


def _stored_text(store: SkillStore, name: str, file: str) -> str | None:
    """Return a file of a skill in this home; None when there is none."""
    skill = store.catalogue().get(name)
    state = read_text(skill.directory / file) if skill and skill.root == store.root else None
    return content_checks.canonical_content(state.text) if isinstance(state, TextFile) else None


def _create(plan: SkillMigration, store: SkillStore) -> str:
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
