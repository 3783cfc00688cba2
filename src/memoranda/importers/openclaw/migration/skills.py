"""Migrates skills: those of the workspace and those installed for all agents, but not OpenClaw's bundled ones."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from memoranda.importers.migration import ORIGIN, read_skill, skill_file_refusal
from memoranda.importers.openclaw.credentials import MigrationRedactor
from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.steps import MigrationHistory, MigrationStep, SkillConflict, WriteSkill
from memoranda.importers.openclaw.migration.workspace import plan_archive
from memoranda.memory.skills.skill_text import SKILL_FILE, name_problem, parse_skill
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillReceipt, SkillRefusal
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_file import TextFile, read_text, split_front_matter

_NAME_LINE = re.compile(r"^name[ \t]*:.*$", re.MULTILINE)
_MAX_NAME_NUMBER = 20


@dataclass(slots=True)
class _SourceSkill:
    """A skill in OpenClaw: its texts by path, and the files that cannot be migrated, with the reason."""

    name: str
    directory: Path
    files: dict[str, str] = field(default_factory=dict)
    omitted_files: dict[str, str] = field(default_factory=dict)


def plan_skills(
    installation: Installation,
    store: SkillStore,
    history: MigrationHistory,
    conflict: SkillConflict,
    redactor: MigrationRedactor,
) -> Iterator[MigrationStep]:
    """Plan every skill; if two have the same name, the workspace's own wins, as it does in OpenClaw."""
    planned_names: set[str] = set()
    for directory in _skill_directories(installation):
        skill = _read(directory, redactor)
        source = str(directory)
        if skill is None:
            yield MigrationStep("skill", source, "", "error", f"{SKILL_FILE} cannot be read.")
        elif skill.name in planned_names:
            yield MigrationStep(
                "skill",
                source,
                "",
                "skipped",
                f"Another skill in OpenClaw is called {skill.name} and takes precedence.",
            )
        else:
            planned_names.add(skill.name)
            yield from _plan(skill, store, history, conflict)


def write_skill(work: WriteSkill, store: SkillStore) -> SkillReceipt | SkillRefusal:
    """Write a skill file by file, except the files that are already here."""
    outcome: SkillReceipt | SkillRefusal | None = None
    for file, text in work.files.items():
        if store.catalogue().get(work.name) is None:
            outcome = store.create(work.name, text, ORIGIN)
        elif _stored_text(store, work.name, file) != text:
            outcome = store.write_file(work.name, file, text, ORIGIN)
        if isinstance(outcome, SkillRefusal):
            return outcome
    return outcome or SkillReceipt(work.name, store.root / work.name, "It is already here.")


def _plan(
    skill: _SourceSkill, store: SkillStore, history: MigrationHistory, conflict: SkillConflict
) -> Iterator[MigrationStep]:
    source, name = str(skill.directory), skill.name
    if refusal := _refusal_reason(name, skill.files, store):
        text = skill.files[SKILL_FILE]
        yield plan_archive("skill", source, f"skills/{skill.directory.name}.md", text, history, refusal)
        return
    details = {"files": list(skill.files), **({"left_files": skill.omitted_files} if skill.omitted_files else {})}
    differing = _differing_files(store, name, skill.files)
    if differing and conflict == "rename":
        name = _free_name(store, skill)
        files = {**skill.files, SKILL_FILE: _with_name(skill.files[SKILL_FILE], name)}
        differing, skill.files = [], files
    destination = str(store.root / name)
    if differing and conflict == "skip":
        reason = "Another skill here has this name; --skill-conflict overwrite or rename migrates it."
        yield MigrationStep("skill", source, destination, "conflict", reason, details)
    elif all(_stored_text(store, name, file) == text for file, text in skill.files.items()):
        yield MigrationStep("skill", source, destination, "unchanged", "It is already here.", details)
    else:
        reason = "Replaces the skill that has this name here; 'memoranda skills undo' restores it." if differing else ""
        yield MigrationStep("skill", source, destination, "planned", reason, details, WriteSkill(name, skill.files))


def _refusal_reason(name: str, files: dict[str, str], store: SkillStore) -> str:
    """Return why a skill cannot be stored, by the checks of every write; removes rejected files from `files`."""
    if problem := name_problem(name):
        return f"{problem[0].upper()}{problem[1:]}."
    if not store.settings.enabled:
        return "Skills are switched off here."
    for file in list(files):
        refusal = skill_file_refusal(name, file, files[file], store)
        if refusal and file == SKILL_FILE:
            return refusal
        if refusal:
            del files[file]
    return ""


def _read(directory: Path, redactor: MigrationRedactor) -> _SourceSkill | None:
    main = read_text(directory / SKILL_FILE)
    if not isinstance(main, TextFile) or (directory / SKILL_FILE).is_symlink():
        return None
    named = parse_skill(main.text).name
    name = named if named and not name_problem(named) else directory.name
    files, omitted_files = read_skill(directory, redactor.text)
    if named != name:
        files[SKILL_FILE] = _with_name(files[SKILL_FILE], name)
    return _SourceSkill(name, directory, files, omitted_files)


def _with_name(text: str, name: str) -> str:
    """Return the text of a skill with another name."""
    parts = split_front_matter(text.replace("\r\n", "\n"))
    if parts is None:
        return text
    line = f"name: {name}"
    front = _NAME_LINE.sub(line, parts.front_matter, count=1)
    front = front if _NAME_LINE.search(front) else f"{line}\n{front}"
    return f"---\n{front}---\n{parts.body}"


def _skill_directories(installation: Installation) -> Iterator[Path]:
    """Yield the directories that contain a skill; skips links."""
    for parent in [*(workspace / "skills" for workspace in installation.workspaces), installation.root / "skills"]:
        if parent.is_dir():
            for directory in sorted(parent.iterdir()):
                if directory.is_dir() and not directory.is_symlink() and (directory / SKILL_FILE).is_file():
                    yield directory


def _stored_text(store: SkillStore, name: str, file: str) -> str | None:
    """Return a file of a skill in this home; None when there is none."""
    skill = store.catalogue().get(name)
    state = read_text(skill.directory / file) if skill is not None else None
    return state.text if isinstance(state, TextFile) else None


def _differing_files(store: SkillStore, name: str, files: Mapping[str, str]) -> list[str]:
    """Return the files that exist here with different content."""
    present = {file: _stored_text(store, name, file) for file in files}
    return [file for file, text in files.items() if present[file] not in (None, text)]


def _free_name(store: SkillStore, skill: _SourceSkill) -> str:
    """Return a free name, or the name under which an earlier migration stored this skill."""
    for number in range(1, _MAX_NAME_NUMBER):
        name = f"{skill.name[:50].rstrip('-')}-openclaw" + (f"-{number}" if number > 1 else "")
        files = {**skill.files, SKILL_FILE: _with_name(skill.files[SKILL_FILE], name)}
        if not _differing_files(store, name, files):
            return name
    return f"{skill.name[:40].rstrip('-')}-openclaw-{_MAX_NAME_NUMBER}"
