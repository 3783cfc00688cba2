"""The files in which a project tells agents about itself: found, scanned, cut to a size, and shown.

Of several kinds only the first that says anything is used, because projects keep the others as copies. Of that kind,
the files of all directories from the top of the repository down to the one that is worked in are shown, outermost
first. The whole text is scanned before anything is cut, so that what is shown at its end was read too.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.prompt.truncation import fair_shares, truncate_middle
from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.support.canonical_text import BYTE_ORDER_MARK, unify_newlines
from memoranda.support.durable_files import read_file
from memoranda.support.front_matter import split_front_matter

# Each kind by its names, of which the first that is there counts. Cursor's rules are files in a folder as well.
KINDS: tuple[tuple[str, ...], ...] = (
    (".memoranda.md", "MEMORANDA.md"),
    (".hermes.md", "HERMES.md"),
    ("AGENTS.md", "agents.md"),
    ("CLAUDE.md", "claude.md"),
    ("GEMINI.md",),
    (".github/copilot-instructions.md",),
    (".cursorrules",),
)
_RULES_FOLDER, _RULES = ".cursor/rules", "*.mdc"
_INTRODUCTION = (
    "# Project files\n\nThe project that is worked on says this about itself. Follow its conventions; where two files "
    "disagree, the later one is closer to the work; what the user says comes before both."
)
LEAST_CHARS, MOST_CHARS = 20_000, 500_000
_SHARE_OF_WINDOW = 0.06
_CHARS_PER_TOKEN = 4
_MOST_BYTES = 1_000_000
_MOST_LEVELS = 64


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The section for a prompt ("" when there are no files), and what a person should know about it."""

    text: str = ""
    notices: tuple[str, ...] = ()


def read_project_files(directory: Path, *, window: int = 0, most: int = 0) -> ProjectFiles:
    """The project files that hold for a directory, in at most `most` characters, or as many as a window allows."""
    notices: list[str] = []
    directories = _from_the_top(Path(os.path.realpath(directory)))
    top = directories[0]
    for kind in KINDS:
        found = [
            (path.relative_to(top).as_posix(), text)
            for each in directories
            for path in _files(each, kind)
            if (text := _read(path, top, notices))
        ]
        if found:
            return _show(found, most or room_in(window), notices)
    return ProjectFiles(notices=tuple(notices))


def room_in(window: int) -> int:
    """How many characters of project files fit a model's window of so many tokens; 0 means that it is unknown."""
    return min(MOST_CHARS, max(LEAST_CHARS, int(window * _SHARE_OF_WINDOW) * _CHARS_PER_TOKEN))


def _from_the_top(directory: Path) -> list[Path]:
    """The directories from the root of the repository down to this one; by itself when there is no repository."""
    above = [directory, *directory.parents][:_MOST_LEVELS]
    for depth, each in enumerate(above):
        if os.path.lexists(each / ".git"):
            return above[depth::-1]
    return [directory]


def _files(directory: Path, kind: Sequence[str]) -> Iterator[Path]:
    # Compared with the names that are really there: some file systems do not tell case apart.
    there = [directory / name for name in kind if Path(name).name in _names(directory / Path(name).parent)]
    yield from there[:1]
    if ".cursorrules" in kind:
        yield from sorted((directory / _RULES_FOLDER).glob(_RULES), key=lambda path: path.name)


def _names(directory: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(directory))
    except OSError:
        # A directory that is not there, or that we may not look into, has no project files for us.
        return frozenset()


def _read(path: Path, top: Path, notices: list[str]) -> str:
    """The text of a file without its front matter; "" when it says nothing or must not be read."""
    # A link that leads out of the project could show any file of the user's to a model.
    if not Path(os.path.realpath(path)).is_relative_to(top):
        notices.append(f"{path} was left out of the prompt: it is a link that leads out of the project.")
        return ""
    try:
        raw = read_file(path, _MOST_BYTES + 1)
        text = unify_newlines(raw.decode("utf-8")).removeprefix(BYTE_ORDER_MARK)
    except OSError as error:
        notices.append(f"{path} was left out of the prompt: {error.strerror or error}.")
        return ""
    except UnicodeDecodeError:
        if len(raw) <= _MOST_BYTES:
            notices.append(f"{path} was left out of the prompt: it is not UTF-8.")
            return ""
    if len(raw) > _MOST_BYTES:
        notices.append(f"{path} was left out of the prompt: it is larger than {_MOST_BYTES:,} bytes.")
        return ""
    parts = split_front_matter(text)
    return (parts.body.strip() if parts else "") or text.strip()


def _show(found: Sequence[tuple[str, str]], most: int, notices: list[str]) -> ProjectFiles:
    texts: list[str] = []
    for name, text in found:
        # The name is the project's as well, and is judged with the text.
        heading = "".join(char if char.isprintable() else "\ufffd" for char in name)
        withheld = withhold_passages(escape_tags(f"## {heading}\n\n{text}"))
        if withheld.passages:
            what = ", ".join(withheld.findings)
            notices.append(f"{heading}: passages withheld: {len(withheld.passages)} ({what}).")
        texts.append(withheld.text)
    shares = fair_shares([len(text) for text in texts], most)
    for (name, _), text, share in zip(found, texts, shares, strict=True):
        if len(text) > share:
            notices.append(f"{name} has {len(text):,} characters; the prompt shows {share:,} of them.")
    shown = [truncate_middle(text, share, name) for (name, _), text, share in zip(found, texts, shares, strict=True)]
    return ProjectFiles("\n\n".join([_INTRODUCTION, *shown]), tuple(notices))
