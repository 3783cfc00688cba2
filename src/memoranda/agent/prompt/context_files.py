"""Files that a prompt shows: SOUL.md in the home, and the project's files for agents (AGENTS.md …).

Of several kinds of project files only the first that is not empty is used, because projects keep the others as copies.
Of that kind, the files of all directories from the root of the repository down to the working directory are shown,
outermost first. The whole text is scanned before it is shortened, so that everything that is shown was scanned in its
context.

The head of a rule of Cursor (`.cursor/rules/*.mdc`) says when it applies: always, when files that match its globs are
worked on, when the agent asks for it by its description, or only when the user names it. A prompt is assembled once,
before any file is opened. So a rule with globs applies when a matching file lies in the working directory or below it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.support.canonical_text import BYTE_ORDER_MARK, unify_newlines
from memoranda.support.durable_files import read_file
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_middle
from memoranda.support.text_file import MissingFile, TextFile, read_text, split_front_matter

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


_HEAD_SHARE = 0.75


def shorten_file(text: str, limit: int, name: str) -> str:
    """The start and the end of a file in whole lines, with a note in between that says what is missing."""
    shown_name = name.replace("{", "{{").replace("}", "}}")
    note = f"\n[… {{total:,}} characters in all: the middle of {shown_name} is left out here; read the file for it …]\n"
    return shorten_middle(text, limit, note, head_share=_HEAD_SHARE, whole_lines=True)


def fair_shares(wanted: list[int], total: int) -> list[int]:
    """Divide a total: each gets all it wants if there is enough, else the largest ones get less first."""
    shares = [0] * len(wanted)
    left = total
    by_size = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for done, index in enumerate(by_size):
        shares[index] = min(wanted[index], left // (len(wanted) - done))
        left -= shares[index]
    return shares


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
MIN_PROJECT_CHARS, MAX_PROJECT_CHARS = 20_000, 500_000
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
    return min(MAX_PROJECT_CHARS, max(MIN_PROJECT_CHARS, int(window * _SHARE_OF_WINDOW) * _CHARS_PER_TOKEN))


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


FILE_NAME = "SOUL.md"
DEFAULT_IDENTITY = (
    "You are a helpful assistant with a memory. You answer plainly and to the point, say what you do not know, do "
    "what you were asked to the end, and claim nothing to be done that you have not done."
)
MAX_IDENTITY_CHARS = 20_000
# Elsewhere "you are now" tries to give the model another identity; SOUL.md is the place that may say it.
_NEW_ROLE = re.compile(r"(?i)\b(you(?: are|'re|’re)) now\b")


@dataclass(frozen=True, slots=True)
class Identity:
    text: str
    notices: tuple[str, ...] = ()


def read_identity(home: Path) -> Identity:
    """Read SOUL.md and withhold suspicious passages; the default when nothing is left that may be shown."""
    path = home / FILE_NAME
    state = read_text(path)
    if isinstance(state, MissingFile):
        return Identity(DEFAULT_IDENTITY)
    if not isinstance(state, TextFile):
        return Identity(DEFAULT_IDENTITY, (f"{path} was left out of the prompt: {state.problem}.",))
    text = unify_newlines(state.text).removeprefix(BYTE_ORDER_MARK).strip()
    if not text:
        return Identity(DEFAULT_IDENTITY)
    withheld = withhold_passages(escape_tags(text), read_as=lambda line: _NEW_ROLE.sub(r"\1", line))
    notices: list[str] = []
    shown = withheld.text
    if withheld.passages:
        notices.append(f"{path}: passages withheld: {len(withheld.passages)} ({', '.join(withheld.findings)}).")
        placeholders = {passage.placeholder for passage in withheld.passages}
        if all(line in placeholders or not line.strip() for line in shown.split("\n")):
            return Identity(DEFAULT_IDENTITY, tuple(notices))
    if len(shown) > MAX_IDENTITY_CHARS:
        notices.append(f"{path} has {len(shown):,} characters; the prompt shows {MAX_IDENTITY_CHARS:,} of them.")
    return Identity(shorten_file(shown, MAX_IDENTITY_CHARS, FILE_NAME), tuple(notices))
