"""Parses and writes SKILL.md: YAML front matter with the purpose of the skill, then the procedure.

Reading is lenient, because skills have many authors: it uses what it understands and lists the problems. Writing is
strict, so that every other program that knows the format can read the result. No valid name of a skill or of a file in
it leads out of the skill.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from memoranda.support.canonical_text import BYTE_ORDER_MARK, unify_newlines
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_file import split_front_matter

SKILL_FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")
_MAX_NAME = 64
_MAX_PARTS = 5
# Names that Windows reserves for devices, with any suffix.
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")

MAX_DESCRIPTION = 1_024
_MAX_COMPATIBILITY = 500
_MAX_FRONT_MATTER = 10_000
_PLAIN_LINE = re.compile(r"^(name|description|license|compatibility)[ \t]*:[ \t]*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SkillText:
    """A parsed SKILL.md; with a description it is usable, whatever its `problems` are."""

    name: str
    description: str
    body: str
    fields: Mapping[str, Any]
    problems: tuple[str, ...]


class FrontMatterError(ValueError):
    """Front matter is not a YAML mapping; the message says why."""


@lru_cache(maxsize=512)
def parse_skill(text: str) -> SkillText:
    """Parse a SKILL.md; never raises."""
    text = unify_newlines(text).removeprefix(BYTE_ORDER_MARK)
    parts = split_front_matter(text)
    if parts is None:
        return SkillText("", "", text, {}, ("it does not begin with front matter between two lines of '---'",))
    problems: list[str] = []
    try:
        fields = _load(parts.front_matter)
    except FrontMatterError as error:
        # Usually an unquoted colon in the description, which many programs accept.
        problems.append(str(error))
        fields = {found[1]: found[2].strip().strip("\"'") for found in _PLAIN_LINE.finditer(parts.front_matter)}
    problems += _find_problems(fields)
    name, description = fields.get("name"), fields.get("description")
    return SkillText(
        name if isinstance(name, str) else "",
        " ".join(description.split()) if isinstance(description, str) else "",
        parts.body,
        fields,
        tuple(problems),
    )


def with_front_matter(name: str, description: str, body: str) -> str:
    """The text of a SKILL.md with a name, a description and a procedure."""
    # A JSON string is always a YAML string; a name needs quotes only where YAML would read a number or the like.
    quoted = json.dumps(" ".join(description.split()), ensure_ascii=False)
    plain = not name_problem(name) and _load(f"name: {name}")["name"] == name
    shown = name if plain else json.dumps(name)
    return f"---\nname: {shown}\ndescription: {quoted}\n---\n\n{body.strip()}\n"


def has_front_matter(text: str) -> bool:
    return split_front_matter(unify_newlines(text).removeprefix(BYTE_ORDER_MARK)) is not None


def _find_problems(fields: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str):
        found.append("'name' is missing or is not text")
    elif problem := name_problem(name):
        found.append(problem)
    if not isinstance(description, str) or not description.strip():
        found.append("'description' is missing or is not text")
    elif len(description) > MAX_DESCRIPTION:
        found.append(f"'description' has more than {MAX_DESCRIPTION:,} characters")
    found += [
        f"'{field}' is not text" for field in ("license", "compatibility") if not isinstance(fields.get(field, ""), str)
    ]
    compatibility = fields.get("compatibility", "")
    if isinstance(compatibility, str) and len(compatibility) > _MAX_COMPATIBILITY:
        found.append(f"'compatibility' has more than {_MAX_COMPATIBILITY} characters")
    if not isinstance(fields.get("metadata", {}), Mapping):
        found.append("'metadata' is not a mapping")
    if not isinstance(fields.get("allowed-tools", ""), str | list):
        found.append("'allowed-tools' is not text")
    return found


def _load(front_matter: str) -> dict[str, Any]:
    if len(front_matter) > _MAX_FRONT_MATTER:
        raise FrontMatterError(f"its front matter has more than {_MAX_FRONT_MATTER:,} characters")
    # The import takes 40 ms, and many homes have no skills.
    from ruamel.yaml import YAML

    try:
        found = YAML(typ="safe", pure=True).load(front_matter)
    except Exception as error:
        # The parser raises all kinds of errors for odd documents; each means that it cannot be parsed.
        reason = getattr(error, "problem", None) or type(error).__name__
        raise FrontMatterError(f"its front matter is not valid YAML ({reason})") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise FrontMatterError("its front matter does not contain keys and values")
    return found


def name_problem(name: str) -> str | None:
    """Describes what is wrong with the name of a skill; None when it is valid."""
    if len(name) <= _MAX_NAME and _NAME.fullmatch(name) and not _DEVICES.fullmatch(name):
        return None
    return "a skill's name has 1 to 64 of a-z, 0-9 and single hyphens between them"


def file_problem(file: str) -> str | None:
    """Describes what is wrong with the path of a file inside a skill; None when it is valid."""
    parts = file.split("/")
    if len(parts) > _MAX_PARTS:
        return f"a file may be at most {_MAX_PARTS - 1} folders deep in its skill"
    for part in parts:
        if not _PART.fullmatch(part) or part.endswith((".", " ")) or _DEVICES.fullmatch(part):
            return (
                "a file in a skill is named by a relative path such as 'references/api.md': letters, digits, "
                "'_', '-', '.' and blanks, no hidden files, no '..'"
            )
    if any(part.casefold() == SKILL_FILE.casefold() for part in parts) and file != SKILL_FILE:
        return f"only the skill itself is called {SKILL_FILE}"
    return None


def is_inside(path: str) -> bool:
    """Whether a relative path stays inside the directory that it is relative to."""
    return "\\" not in path and "\0" not in path and all(part not in ("", ".", "..") for part in path.split("/"))
