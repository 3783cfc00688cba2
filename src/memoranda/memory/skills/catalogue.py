"""Finds skills, and renders their list for a system prompt: names and descriptions, within a character limit.

A skill is `<name>/SKILL.md` or `<category>/<name>/SKILL.md` below one or several directories. A broken skill never
hides another: the catalogue lists it with its problem. Links are not followed, because a skill of unknown origin could
use one to show any file of the user.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from memoranda.memory.skills.skill_text import SKILL_FILE, name_problem, parse_skill
from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end
from memoranda.support.text_file import TextFile, read_text

_MAX_BYTES = 1_000_000

_HEADING = "# Skills\n\nProcedures for recurring work. Read one with `skill_view` before you do what it is for."
_MAX_LINE = 400


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
    try:
        size = path.lstat().st_size
    except FileNotFoundError:
        # Another process has removed the skill since its folder was found.
        return None
    if size > _MAX_BYTES:
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


def render_skill_list(catalogue: Catalogue, max_chars: int) -> str:
    """One line per skill, sorted by name; those that do not fit are listed by name only, or just counted."""
    names = [skill.name for skill in catalogue.skills]
    described = _describe_skills(names, [skill.description for skill in catalogue.skills])
    room = max_chars - len(_HEADING)
    lines = _fit_lines(names, described, room) if names and room > 0 else []
    return "\n".join([_HEADING, *lines]) if lines else ""


def list_descriptions(rendered: str) -> tuple[str, ...]:
    """The descriptions in a list that `render_skill_list` returned."""
    lines = rendered.removeprefix(_HEADING).split("\n")
    return tuple(text for line in lines if (text := line.partition(": ")[2]))


def _fit_lines(names: Sequence[str], described: Sequence[str], room: int) -> list[str]:
    bare = [f"- {name}" for name in names]
    # How many characters the names from each index on need, line ends included.
    needed = list(accumulate((len(line) + 1 for line in reversed(bare)), initial=0))[::-1]
    lines: list[str] = []
    for index, line in enumerate(described):
        if len(line) + 1 + needed[index + 1] <= room:
            lines.append(line)
        elif needed[index] <= room:
            lines.append(bare[index])
        else:
            more = f"- ({len(names) - index} more: call `skills_list`)"
            if len(bare[index]) + 1 + len(more) + 1 > room:
                return [*lines, more] if len(more) + 1 <= room else lines
            lines.append(bare[index])
        room -= len(lines[-1]) + 1
    return lines


def _describe_skills(names: Sequence[str], descriptions: Sequence[str]) -> list[str]:
    """The lines of the list; a placeholder replaces a description with scanner findings."""
    described = zip(names, descriptions, strict=True)
    lines = [shorten_end(f"- {name}: {escape_tags(text)}", _MAX_LINE) for name, text in described]
    for passage in withhold_passages("\n".join(lines)).passages:
        for index in range(passage.first_line, passage.first_line + passage.text.count("\n") + 1):
            lines[index] = f"- {names[index]}: {passage.placeholder}"
    return lines
