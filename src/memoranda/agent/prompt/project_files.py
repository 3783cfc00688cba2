"""Project files for agents (AGENTS.md …): finds them, scans them, shortens them, and builds their prompt section.

Of several kinds only the first that is not empty is used, because projects keep the others as copies. Of that kind,
the files of all directories from the root of the repository down to the working directory are shown, outermost first.
Rules of Cursor apply only where their globs match (`cursor_rules.py`).
The whole text is scanned before it is shortened, so that everything that is shown was scanned in its context.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.agent.prompt.cursor_rules import rule_applies
from memoranda.agent.prompt.size_limits import fair_shares, shorten_file
from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.support.canonical_text import BYTE_ORDER_MARK, unify_newlines
from memoranda.support.durable_files import read_file
from memoranda.support.text_file import split_front_matter

# The names of each kind, of which the first that exists counts. Cursor's rules are also files in a folder.
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
MIN_CHARS, MAX_CHARS = 20_000, 500_000
_SHARE_OF_WINDOW = 0.06
_CHARS_PER_TOKEN = 4
_MAX_BYTES = 1_000_000
_MAX_LEVELS = 64


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The section for a prompt ("" without files), and notices for a person about what it leaves out.

    `parts` are the texts of the files in it, without their headings.
    """

    text: str = ""
    notices: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def read_project_files(directory: Path, *, window: int = 0, limit: int = 0) -> ProjectFiles:
    """Read the project files that apply to a directory, in at most `limit` characters; 0 is as the window allows."""
    notices: list[str] = []
    directories = _directories_from_root(Path(os.path.realpath(directory)))
    top = directories[0]
    for kind in KINDS:
        found = [
            (path.relative_to(top).as_posix(), text)
            for folder in directories
            for path in _find_files(folder, kind)
            if (text := _read_text(path, top, directories[-1], notices))
        ]
        if found:
            return _render(found, limit or project_chars_for(window), notices)
    return ProjectFiles(notices=tuple(notices))


def project_chars_for(window: int) -> int:
    """How many characters of project files fit into a window of so many tokens; 0 is an unknown window."""
    return min(MAX_CHARS, max(MIN_CHARS, int(window * _SHARE_OF_WINDOW) * _CHARS_PER_TOKEN))


def _directories_from_root(directory: Path) -> list[Path]:
    """The directories from the root of the repository down to this one; only this one without a repository."""
    above = [directory, *directory.parents][:_MAX_LEVELS]
    for depth, parent in enumerate(above):
        if os.path.lexists(parent / ".git"):
            return above[depth::-1]
    return [directory]


def _find_files(directory: Path, kind: Sequence[str]) -> Iterator[Path]:
    # Compared with the names in the directory: some file systems ignore case.
    present = [directory / name for name in kind if Path(name).name in _list_names(directory / Path(name).parent)]
    yield from present[:1]
    if ".cursorrules" in kind:
        yield from sorted((directory / _RULES_FOLDER).glob(_RULES), key=lambda path: path.name)


def _list_names(directory: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(directory))
    except OSError:
        # A directory that is missing or not readable has no project files for us.
        return frozenset()


def _read_text(path: Path, top: Path, directory: Path, notices: list[str]) -> str:
    """The text of a file without its front matter; "" when it is empty, must not be read or does not apply."""
    # A link that leads out of the project could show any file of the user's to a model.
    if not Path(os.path.realpath(path)).is_relative_to(top):
        notices.append(f"{path} was left out of the prompt: it is a link that leads out of the project.")
        return ""
    try:
        raw = read_file(path, _MAX_BYTES + 1)
        text = unify_newlines(raw.decode("utf-8")).removeprefix(BYTE_ORDER_MARK)
    except OSError as error:
        notices.append(f"{path} was left out of the prompt: {error.strerror or error}.")
        return ""
    except UnicodeDecodeError:
        if len(raw) <= _MAX_BYTES:
            notices.append(f"{path} was left out of the prompt: it is not UTF-8.")
            return ""
    if len(raw) > _MAX_BYTES:
        notices.append(f"{path} was left out of the prompt: it is larger than {_MAX_BYTES:,} bytes.")
        return ""
    if path.suffix == ".mdc" and not rule_applies(text, path.parent.parent.parent, directory):
        return ""
    parts = split_front_matter(text)
    return (parts.body.strip() if parts else "") or text.strip()


def _render(found: Sequence[tuple[str, str]], limit: int, notices: list[str]) -> ProjectFiles:
    texts: list[str] = []
    for name, text in found:
        # The name comes from the project too, so it is scanned with the text.
        heading = "".join(char if char.isprintable() else "\ufffd" for char in name)
        withheld = withhold_passages(escape_tags(f"## {heading}\n\n{text}"))
        if withheld.passages:
            what = ", ".join(withheld.findings)
            notices.append(f"{heading}: passages withheld: {len(withheld.passages)} ({what}).")
        texts.append(withheld.text)
    shares = fair_shares([len(text) for text in texts], limit)
    for (name, _), text, share in zip(found, texts, shares, strict=True):
        if len(text) > share:
            notices.append(f"{name} has {len(text):,} characters; the prompt shows {share:,} of them.")
    shown = [shorten_file(text, share, name) for (name, _), text, share in zip(found, texts, shares, strict=True)]
    bodies = tuple(text.partition("\n\n")[2].strip() for text in shown)
    return ProjectFiles("\n\n".join([_INTRODUCTION, *shown]), tuple(notices), bodies)
