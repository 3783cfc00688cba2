"""Skills: the workspace's own and those installed for all agents. Bundled ones belong to OpenClaw and stay."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.memories import ORIGIN
from memoranda.importers.openclaw.migration.steps import MigrationStep, SkillConflict, WriteSkill
from memoranda.importers.openclaw.migration.workspace_files import archived_text
from memoranda.importers.openclaw.redaction import MigrationRedactor
from memoranda.skills import content_checks
from memoranda.skills.names import SKILL_FILE, file_problem, name_problem
from memoranda.skills.skill_text import parse_skill
from memoranda.skills.store import SkillStore, list_skill_files
from memoranda.skills.write_result import SkillReceipt, SkillRefusal
from memoranda.support.front_matter import split_front_matter
from memoranda.support.text_file import TextFile, read_text

_NAME_LINE = re.compile(r"^name[ \t]*:.*$", re.MULTILINE)
_MOST_NUMBERS = 20


@dataclass(slots=True)
class _Found:
    """A skill as it is there: its texts by their paths, and what cannot be taken along."""

    name: str
    directory: Path
    files: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


def plan_skills(
    found: Installation,
    store: SkillStore,
    history: MigrationHistory,
    conflict: SkillConflict,
    redactor: MigrationRedactor,
) -> Iterator[MigrationStep]:
    """What would become of every skill; of two with one name the workspace's own counts, as it does there."""
    taken: set[str] = set()
    for directory in _directories(found):
        skill = _read(directory, redactor)
        source = str(directory)
        if skill is None:
            yield MigrationStep("skill", source, "", "error", f"{SKILL_FILE} cannot be read.")
        elif skill.name in taken:
            yield MigrationStep(
                "skill", source, "", "skipped", f"Another skill there is called {skill.name} and comes first."
            )
        else:
            taken.add(skill.name)
            yield from _plan(skill, store, history, conflict)


def make_skill(work: WriteSkill, store: SkillStore) -> SkillReceipt | SkillRefusal:
    """Make a skill, file by file; what is there already is not written again."""
    outcome: SkillReceipt | SkillRefusal | None = None
    for file, text in work.files.items():
        if store.catalogue().get(work.name) is None:
            outcome = store.create(work.name, text, ORIGIN)
        elif _present(store, work.name, file) != content_checks.canonical_content(text):
            outcome = store.write_file(work.name, file, text, ORIGIN)
        if isinstance(outcome, SkillRefusal):
            return outcome
    return outcome or SkillReceipt(work.name, store.root / work.name, "It was there already.")


def _plan(
    skill: _Found, store: SkillStore, history: MigrationHistory, conflict: SkillConflict
) -> Iterator[MigrationStep]:
    source, name = str(skill.directory), skill.name
    if refusal := _refused(name, skill.files, store):
        text = skill.files[SKILL_FILE]
        yield archived_text("skill", source, f"skills/{skill.directory.name}.md", text, history, refusal)
        return
    details = {"files": list(skill.files), **({"left_files": skill.left} if skill.left else {})}
    differing = _differing(store, name, skill.files)
    if differing and conflict == "rename":
        name = _free_name(store, skill)
        files = {**skill.files, SKILL_FILE: _renamed(skill.files[SKILL_FILE], name)}
        differing, skill.files = [], files
    destination = str(store.root / name)
    if differing and conflict == "skip":
        reason = "Another skill of this name is here; --skill-conflict overwrite or rename takes it along."
        yield MigrationStep("skill", source, destination, "conflict", reason, details)
    elif all(
        _present(store, name, file) == content_checks.canonical_content(text) for file, text in skill.files.items()
    ):
        yield MigrationStep("skill", source, destination, "unchanged", "It is there already.", details)
    else:
        reason = "Replaces the one that is there; 'memoranda skills undo' brings it back." if differing else ""
        yield MigrationStep("skill", source, destination, "planned", reason, details, WriteSkill(name, skill.files))


def _refused(name: str, files: dict[str, str], store: SkillStore) -> str:
    """Why a skill cannot be kept here, judged as every write is; files that cannot are taken off the list."""
    if problem := name_problem(name):
        return f"{problem[0].upper()}{problem[1:]}."
    if not store.settings.enabled:
        return "Skills are switched off here."
    for file in list(files):
        text = content_checks.canonical_content(files[file])
        limit = store.settings.skill_char_limit if file == SKILL_FILE else store.settings.file_char_limit
        refusal = content_checks.check_content(name, file, text, "", limit)
        refusal = refusal or content_checks.scan_new_passages(name, text, "", store.screen, frozenset())
        if refusal and file == SKILL_FILE:
            return refusal.message.removesuffix(" Nothing was changed.")
        if refusal:
            del files[file]
    return ""


def _read(directory: Path, redactor: MigrationRedactor) -> _Found | None:
    main = read_text(directory / SKILL_FILE)
    if not isinstance(main, TextFile) or (directory / SKILL_FILE).is_symlink():
        return None
    named = parse_skill(main.text).name
    skill = _Found(named if named and not name_problem(named) else directory.name, directory)
    text = main.text if named == skill.name else _renamed(main.text, skill.name)
    skill.files[SKILL_FILE] = redactor.text(text)
    for file in list_skill_files(directory):
        state = read_text(directory / file)
        if problem := file_problem(file):
            skill.left[file] = problem
        elif isinstance(state, TextFile):
            skill.files[file] = redactor.text(state.text)
        else:
            skill.left[file] = getattr(state, "problem", "it is gone")
    return skill


def _renamed(text: str, name: str) -> str:
    """The text of a skill under another name."""
    parts = split_front_matter(text.replace("\r\n", "\n"))
    if parts is None:
        return text
    line = f"name: {name}"
    front = _NAME_LINE.sub(line, parts.front_matter, count=1)
    front = front if _NAME_LINE.search(front) else f"{line}\n{front}"
    return f"---\n{front}---\n{parts.body}"


def _directories(found: Installation) -> Iterator[Path]:
    """The folders that hold a skill, links left out."""
    for place in [*(workspace / "skills" for workspace in found.workspaces), found.root / "skills"]:
        if place.is_dir():
            for directory in sorted(place.iterdir()):
                if directory.is_dir() and not directory.is_symlink() and (directory / SKILL_FILE).is_file():
                    yield directory


def _present(store: SkillStore, name: str, file: str) -> str | None:
    """A file of a skill as it is here; None when there is none."""
    skill = store.catalogue().get(name)
    state = read_text(skill.directory / file) if skill is not None else None
    return state.text if isinstance(state, TextFile) else None


def _differing(store: SkillStore, name: str, files: Mapping[str, str]) -> list[str]:
    """The files that are here with another content."""
    present = {file: _present(store, name, file) for file in files}
    return [file for file, text in files.items() if present[file] not in (None, content_checks.canonical_content(text))]


def _free_name(store: SkillStore, skill: _Found) -> str:
    """A name that nobody has, or that has this very skill from an earlier time."""
    for number in range(1, _MOST_NUMBERS):
        name = f"{skill.name[:50].rstrip('-')}-openclaw" + (f"-{number}" if number > 1 else "")
        files = {**skill.files, SKILL_FILE: _renamed(skill.files[SKILL_FILE], name)}
        if not _differing(store, name, files):
            return name
    return f"{skill.name[:40].rstrip('-')}-openclaw-{_MOST_NUMBERS}"
