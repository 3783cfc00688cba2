"""What Claude Code and Codex note about a project by themselves: notes, and proposals for the memory of that project.

Claude Code keeps Markdown files in `projects/<directory>/memory/`; `MEMORY.md` there is the notes themselves or a list
of links to the other files. The transcripts beside it say which directory that is. Codex keeps one
`memories/MEMORY.md` for all projects: each `# Task Group:` names its directories in the line `applies_to: cwd=…`, and
has sections, of which those about single tasks are a history and not a memory.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from memoranda.importers.chat_messages import get_text
from memoranda.importers.notes import find_markdown, markdown_events
from memoranda.importers.reader_protocol import ImportedMessage, ImportedProposal, ImportItem, Problem, ReadEvent
from memoranda.importers.source_files import find_files, item_at, read_json_lines
from memoranda.memory.curated.settings import project_target
from memoranda.support.projects import project_of

_GROUP = re.compile(r"^# Task Group:", re.MULTILINE)
_DIRECTORY = re.compile(r"^applies_to:[ \t]*cwd=([^;\n]+)", re.MULTILINE)
_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
_LINK = re.compile(r"^[ \t]*[-*][ \t]+\[[^\]]*\]\([^)]*\.md\).*$", re.MULTILINE)
_HEADING = re.compile(r"^#.*$", re.MULTILINE)
_LIST_ITEM = re.compile(r"^[ \t]*[-*][ \t]+", re.MULTILINE)
# A transcript names its directory in its first lines.
_MAX_LINES = 50


def find_notes_of_claude(directory: Path) -> list[ImportItem]:
    """Return the notes of all projects below Claude Code's directory of projects, or of the one that it is."""
    try:
        folders = [directory / "memory", *sorted(directory.glob("*/memory"))]
    except OSError:
        return []
    return [item for folder in folders for item in find_markdown(folder)]


def find_notes_of_codex(home: Path) -> list[ImportItem]:
    """Return the notes in Codex's home, if it keeps any."""
    found = item_at(home / "memories" / "MEMORY.md", str(home / "memories"))
    return [found] if found else []


def read_notes_of_claude(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield one file as a note, and as a proposal for the project of the transcripts beside its folder."""
    folder = Path(item.label).parent
    for event in markdown_events(item, "claude-code", f"memory of {folder.name}", f"Claude Code: {folder.name}"):
        yield event
        if isinstance(event, ImportedMessage):
            origin = f"{item.file.name} of Claude Code"
            yield from _propose(_directory_beside(folder), _LINK.sub("", event.message["content"]), origin)


def read_notes_of_codex(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield the file as a note, and each section of a group as a proposal for the project of its directory."""
    for event in markdown_events(item, "codex", "memories", "Codex: memories"):
        yield event
        for group in _GROUP.split(event.message["content"])[1:] if isinstance(event, ImportedMessage) else ():
            directory = _DIRECTORY.search(group)
            _, *sections = _SECTION.split(group)
            for title, text in zip(sections[::2], sections[1::2], strict=True):
                if directory is not None and not title.startswith("Task "):
                    yield from _propose(directory[1].strip(), text, f"{title.strip()} in Codex's memories")


def _propose(directory: str, text: str, origin: str) -> Iterator[ImportedProposal]:
    """Yield a proposal with one paragraph per item of a list, if the directory still belongs to a project."""
    entries = _LIST_ITEM.sub("\n", _HEADING.sub("", text)).strip()
    project = project_of(directory) if entries and Path(directory).is_dir() else None
    if project:
        yield ImportedProposal(project_target(project), entries, origin)


def _directory_beside(folder: Path) -> str:
    """The directory that a transcript of Claude Code names; "" if there is none."""
    for transcript in find_files(folder, lambda file: file.suffix == ".jsonl", "session", 0):
        for _, line in zip(range(_MAX_LINES), read_json_lines(transcript), strict=False):
            directory = "" if isinstance(line, Problem) else get_text(line.value, "cwd")
            if directory:
                return directory
    return ""
