"""Finds what Letta and Letta Code keep or export, and reads each kind of file with its own module."""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.letta.agent_files import read_agents
from memoranda.importers.letta.core_memory import PROGRAM
from memoranda.importers.letta.memory_files import find_memories, read_memory_file
from memoranda.importers.letta.message_pages import messages_on, read_messages
from memoranda.importers.letta.passages import passages_of, read_passages
from memoranda.importers.letta.transcripts import FILE_NAME, STORAGE, find_transcripts, read_transcript
from memoranda.importers.reader_protocol import ImportItem, Problem, ReadEvent
from memoranda.importers.source_files import find_files, item_at, read_json_file

_AGENT_FILE, _PAGE = "agent file", "page"


class Letta:
    """The reader of Letta's agents."""

    name = PROGRAM

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return agent files, pages, conversations and memories under a path, or in Letta's own directory."""
        own = Path.home() / ".letta"
        path = own if path is None else path
        if single := item_at(path, _AGENT_FILE if path.suffix == ".af" else _PAGE):
            return [single]
        found = find_files(path, lambda file: file.suffix == ".af", _AGENT_FILE)
        if path != own and not (path / "conversations").is_dir():
            # In Letta's own directories, such files are settings.
            found += find_files(path, _may_be_page, _PAGE)
        return [*found, *find_transcripts(path), *find_memories(path)]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the sessions and notes of a file."""
        if item.file.suffix == ".md":
            yield from read_memory_file(item)
        elif item.file.name == FILE_NAME:
            yield from read_transcript(item)
        else:
            yield from _read_json(item)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command that continues a conversation of Letta Code's local backend; "" for an agent's."""
        agent, _, conversation = host_id.partition("/")
        if not conversation:
            return ""
        chosen = ["--agent", agent] if conversation == "default" else ["--conversation", conversation]
        return shlex.join(["letta", "--backend", "local", *chosen])


def _may_be_page(file: Path) -> bool:
    return file.suffix == ".json" and not {".git", STORAGE}.intersection(file.parts)


def _read_json(item: ImportItem) -> Iterator[ReadEvent]:
    value = read_json_file(item)
    if isinstance(value, str):
        # Some versions write the JSON as text inside JSON.
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, Problem):
        yield value
    elif isinstance(value, dict) and isinstance(value.get("agents"), list):
        yield from read_agents(value)
    elif messages := messages_on(value):
        yield from read_messages(item, messages)
    elif passages := passages_of(value):
        yield from read_passages(item, passages)
    else:
        yield Problem(item.file, None, "neither an agent file of Letta nor a page of messages or archival memory")
