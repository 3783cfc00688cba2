"""Reads the Markdown memory of Letta Code's agents, each of which is a Git repository.

    agents/<agent>/memory            an agent of a server
    memfs/<agent>/memory             an agent of the local backend

What is in every prompt of the agent are the files in `system`; in a memory with a `MEMORY.md` at its root, the files
beside that.
"""

from collections.abc import Iterator
from pathlib import Path

from memoranda.importers.letta.core_memory import PROGRAM, propose
from memoranda.importers.letta.transcripts import STORAGE
from memoranda.importers.markdown_notes import find_markdown, markdown_events
from memoranda.importers.reader_protocol import ImportedMessage, ImportItem, ReadEvent

_REPOSITORIES = (
    ".git",
    "agents/*/memory/.git",
    "memfs/*/.git",
    "memfs/*/memory/.git",
    f"{STORAGE}/memfs/*/memory/.git",
)


def find_memories(path: Path) -> list[ImportItem]:
    """Return the files of all memories under Letta's own directory, or of the memory that `path` is."""
    try:
        repositories = {found.parent for pattern in _REPOSITORIES for found in path.glob(pattern)}
    except OSError:
        return []
    return [item for repository in sorted(repositories) for item in find_markdown(repository)]


def read_memory_file(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield one file as a note, and as a proposal if it says who the user or the agent is."""
    memory = Path(item.label)
    agent = memory.parent.name if memory.name in ("memory", "memfs") else memory.name
    core = memory if (memory / "MEMORY.md").is_file() else memory / "system"
    for event in markdown_events(item, PROGRAM, agent, f"Letta: memory of {agent}"):
        yield event
        if isinstance(event, ImportedMessage) and item.file.parent == core:
            yield from propose(item.file.stem, event.message["content"], agent)
