"""Finds skills: `<name>/SKILL.md` or `<category>/<name>/SKILL.md` below one or several directories.

A broken skill never hides another: the catalogue lists it with its problem. Links are not followed, because a skill
of unknown origin could use one to show any file of the user.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.memory.skills.names import SKILL_FILE, name_problem
from memoranda.memory.skills.skill_text import parse_skill
from memoranda.support.text_file import TextFile, read_text

_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Skill:
    """A usable skill; `root` is the directory of skills that contains it."""

    name: str
    description: str
    root: Path
    directory: Path

    @property
    def category(self) -> str:
        parent = self.directory.parent
        return "" if parent == self.root else parent.name

    @property
    def path(self) -> str:
        """The path of its folder below the directory of skills."""
        return self.directory.relative_to(self.root).as_posix()

    @property
    def file(self) -> Path:
        return self.directory / SKILL_FILE


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """What is wrong with a path, and whether the skill is unusable (`fatal`)."""

    path: Path
    problem: str
    fatal: bool


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The skills sorted by name, and all problems."""

    skills: tuple[Skill, ...]
    problems: tuple[SkillProblem, ...]

    def get(self, name: str) -> Skill | None:
        return next((skill for skill in self.skills if skill.name == name), None)


def find_skills(roots: Sequence[Path]) -> Catalogue:
    """All skills below some directories; of two with the same name, the one in the earlier directory wins."""
    found: dict[str, Skill] = {}
    problems: list[SkillProblem] = []
    for root in roots:
        for directory in _skill_directories(root, problems):
            skill = _read(root, directory, problems)
            if skill is None:
                continue
            if skill.name in found:
                other = found[skill.name].directory
                problems.append(SkillProblem(directory, f"{other} has the same name and is used instead", fatal=True))
            else:
                found[skill.name] = skill
    return Catalogue(tuple(found[name] for name in sorted(found)), tuple(problems))


def _skill_directories(root: Path, problems: list[SkillProblem]) -> Iterator[Path]:
    for directory in _directories(root, problems):
        if os.path.lexists(directory / SKILL_FILE):
            yield directory
            continue
        skills = [path for path in _directories(directory, problems) if os.path.lexists(path / SKILL_FILE)]
        if not skills:
            problems.append(SkillProblem(directory, f"it contains no {SKILL_FILE}", fatal=True))
        yield from skills


def _directories(directory: Path, problems: list[SkillProblem]) -> list[Path]:
    """The directories in a directory, sorted by name, without hidden ones and links."""
    try:
        with os.scandir(directory) as entries:
            visible = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(SkillProblem(directory, f"it cannot be read: {error.strerror}", fatal=True))
        return []
    for entry in visible:
        if entry.is_symlink() and entry.is_dir():
            problems.append(SkillProblem(Path(entry.path), "it is a link, and links are not followed", fatal=True))
    return [Path(entry.path) for entry in visible if entry.is_dir(follow_symlinks=False)]


def _read(root: Path, directory: Path, problems: list[SkillProblem]) -> Skill | None:
    path = directory / SKILL_FILE
    if problem := name_problem(directory.name):
        problems.append(SkillProblem(directory, problem, fatal=True))
        return None
    if path.is_symlink():
        problems.append(SkillProblem(path, "it is a link, and links are not followed", fatal=True))
        return None
    if (size := path.lstat().st_size) > _MAX_BYTES:
        problems.append(SkillProblem(path, f"it is too large ({size:,} bytes)", fatal=True))
        return None
    state = read_text(path)
    if not isinstance(state, TextFile):
        problems.append(SkillProblem(path, getattr(state, "problem", "it no longer exists"), fatal=True))
        return None
    parsed = parse_skill(state.text)
    problems += [SkillProblem(path, problem, fatal=not parsed.description) for problem in parsed.problems]
    if parsed.name and parsed.name != directory.name:
        problems.append(
            SkillProblem(path, f"it says 'name: {parsed.name}', and its folder's name is used", fatal=False)
        )
    return Skill(directory.name, parsed.description, root, directory) if parsed.description else None
