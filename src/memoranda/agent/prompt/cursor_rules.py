"""Which of Cursor's rules (`.cursor/rules/*.mdc`) apply to a session in a directory.

The head of a rule says when it applies: always, when files that match its globs are worked on, when the agent asks for
it by its description, or only when the user names it. A prompt is assembled once, before any file is opened. So a rule
with globs applies when a matching file lies in the working directory or below it.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memoranda.support.text_file import split_front_matter

# Cursor writes globs without quotes, which YAML does not accept.
_FIELD = re.compile(r"^(\w+)[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]+-[ \t]+(.+?)[ \t]*$|^-[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_SKIPPED = {".git", "node_modules", ".venv", "venv", "__pycache__", "dist", "build", "target"}
# In a larger tree a rule applies if no match was found so far: a rule too many does less harm than one too few.
_MAX_ENTRIES = 20_000


def rule_applies(text: str, root: Path, directory: Path) -> bool:
    """Whether a rule of the project at `root` applies to a session that works in `directory`."""
    parts = split_front_matter(text)
    if parts is None:
        return True
    fields = dict(_FIELD.findall(parts.front_matter))
    if fields.get("alwaysApply", "").lower() == "true":
        return True
    globs = _split_globs(fields.get("globs", ""), parts.front_matter)
    if globs:
        return _has_matching_file(globs, root, directory)
    # Without globs, an agent chooses a rule by its description. One without either is for the user to name.
    return bool(fields.get("description")) or "alwaysApply" not in fields


def _split_globs(value: str, front_matter: str) -> list[str]:
    if not value:
        _, _, after = front_matter.partition("globs:")
        lines = after.partition("\n")[2]
        end = _FIELD.search(lines)
        items = _ITEM.findall(lines[: end.start()] if end else lines)
        return [(indented or plain).strip("\"'") for indented, plain in items]
    pieces = re.split(r",(?![^{]*\})", value.strip("[]"))
    return [piece.strip().strip("\"'") for piece in pieces if piece.strip().strip("\"'")]


def _has_matching_file(globs: list[str], root: Path, directory: Path) -> bool:
    patterns = [pattern for glob in globs for pattern in _compile(glob)]
    for count, path in enumerate(_files_below(directory)):
        name = path.relative_to(root).as_posix()
        if count >= _MAX_ENTRIES or any(pattern.fullmatch(name) for pattern in patterns):
            return True
    return False


def _files_below(directory: Path) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(directory):
        subfolders[:] = sorted(set(subfolders) - _SKIPPED)
        yield from (Path(folder, name) for name in files)


@cache
def _compile(glob: str) -> tuple[re.Pattern[str], ...]:
    """The expressions for a glob; one without a slash matches names in any folder, as Cursor has it."""
    glob = glob.removeprefix("./").lstrip("/")
    if "/" not in glob:
        glob = f"**/{glob}"
    if glob.endswith("/"):
        glob += "**"
    return tuple(re.compile(_translate(option)) for option in _expand_braces(glob))


def _expand_braces(glob: str) -> Iterator[str]:
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        yield glob
        return
    for option in found.group(1).split(","):
        yield from _expand_braces(glob[: found.start()] + option.strip() + glob[found.end() :])


def _translate(glob: str) -> str:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    expressions = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(expressions.get(piece) or re.escape(piece) for piece in pieces)
