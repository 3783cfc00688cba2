"""Rules for the names of skills and of the files in them; no valid name leads out of the skill."""

import re

SKILL_FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")
_MAX_NAME = 64
_MAX_PARTS = 5
# Names that Windows reserves for devices, with any suffix.
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")


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
