"""Reads agents of Letta: `.af` files, saved pages of archival memory, and the Markdown memory of Letta Code.

In an `.af` file, an agent's messages become a session, and its memory blocks become notes; what it says about the user
and about itself is proposed for curated memory, too. The source code of tools in the file is not read. Ids in it
(`agent-0`, `message-3`) are new in every export, so an agent is known by its name, and a message by its time and text.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.curated.settings import Target
from memoranda.importers.agent_messages import chat_events
from memoranda.importers.chat_messages import dicts_in, get_text, short_digest, to_json
from memoranda.importers.markdown_notes import find_markdown, markdown_events
from memoranda.importers.notes import note, notes_of
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportedProposal,
    ImportItem,
    Problem,
    ReadEvent,
)
from memoranda.importers.source_files import find_files, item_at, read_json_file

_PROGRAM = "letta"
_AGENT_FILE, _PASSAGES = "agent file", "passages"
_TARGETS: dict[str, Target] = {"human": "user", "persona": "memory"}


class Letta:
    """The reader of Letta's agents."""

    name = _PROGRAM

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return agent files, pages and Markdown memories under a path, or in Letta's own directory."""
        path = Path.home() / ".letta" if path is None else path
        if single := item_at(path, _AGENT_FILE if path.suffix == ".af" else _PASSAGES):
            return [single]
        memories = sorted({file.parent for file in _directories(path)})
        found = find_files(path, lambda file: file.suffix == ".af", _AGENT_FILE)
        if path != Path.home() / ".letta":
            # In Letta's own directory, such files are settings.
            found += find_files(path, lambda file: file.suffix == ".json" and ".git" not in file.parts, _PASSAGES)
        return [*found, *(item for memory in memories for item in find_markdown(memory))]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the sessions and notes of a file."""
        if item.file.suffix == ".md":
            yield from _read_markdown(item)
            return
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
            yield from _read_agents(value)
        elif passages := _passages(value):
            yield from _read_passages(item, passages)
        else:
            yield Problem(item.file, None, "neither an agent file of Letta nor a page of archival memory")

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return "": an agent runs on its server."""
        return ""


def _read_markdown(item: ImportItem) -> Iterator[ReadEvent]:
    # The directory is `agents/<id>/memory`, or a clone of it.
    memory = Path(item.label)
    agent = memory.parent.name if memory.name in ("memory", "memfs") else memory.name
    for event in markdown_events(item, _PROGRAM, agent, f"Letta: memory of {agent}"):
        yield event
        # Files in `system` are in every prompt of the agent, as blocks are.
        if isinstance(event, ImportedMessage) and item.file.parent == memory / "system":
            yield from _propose(item.file.stem, event.message["content"], agent)


def _propose(label: str, text: str, agent: str) -> Iterator[ReadEvent]:
    """Yield a proposal for the blocks that every agent has: who the user is, and who the agent is."""
    if label in _TARGETS:
        yield ImportedProposal(_TARGETS[label], text, f"block {label} of Letta agent {agent}")


def _directories(path: Path) -> list[Path]:
    """Return the `.git` entries of Markdown memories, each of which is a repository."""
    try:
        found = [path / ".git", *path.glob("agents/*/memory/.git"), *path.glob("memfs/*/.git")]
    except OSError:
        return []
    return [entry for entry in found if entry.exists()]


def _read_agents(file: dict[str, Any]) -> Iterator[ReadEvent]:
    blocks = {block.get("id"): block for block in dicts_in(file.get("blocks"))}
    for agent in dicts_in(file["agents"]):
        name = get_text(agent, "name") or "agent"
        listed = agent.get("block_ids")
        own = (
            [blocks[key] for key in listed if isinstance(key, str) and key in blocks]
            if isinstance(listed, list)
            else []
        )
        yield notes_of(_PROGRAM, name, f"Letta: memory of {name}")
        for block in [*own, *dicts_in(agent.get("memory_blocks"))]:
            label, text = get_text(block, "label") or "block", get_text(block, "value")
            if text:
                origin = {field: block.get(field) for field in ("description", "limit", "read_only")}
                yield note(name, label, text.strip(), file.get("created_at"), {"label": label, **origin})
                yield from _propose(label, text.strip(), name)
        yield ImportedConversation(name, f"Letta: {name}", get_text(agent, "llm_config", "model"))
        for message in dicts_in(agent.get("messages")):
            at = message.get("created_at")
            known_by = short_digest(str(at), to_json([message.get("role"), message.get("content")]))
            yield from chat_events(message, f"{name}:{known_by}", at)


def _passages(value: Any) -> list[dict[str, Any]]:
    """Return the passages on a page of archival memory, in every form of the API."""
    listed = value.get("passages", value.get("results")) if isinstance(value, dict) else value
    return [entry.get("passage") or entry for entry in dicts_in(listed) if "text" in (entry.get("passage") or entry)]


def _read_passages(item: ImportItem, passages: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    current = None
    for passage in passages:
        owner = get_text(passage, "archive_id") or get_text(passage, "agent_id") or item.file.stem
        text, name = get_text(passage, "text"), get_text(passage, "id")
        if not text or not name:
            yield Problem(item.file, None, "a passage without id or text")
            continue
        if owner != current:
            current = owner
            yield notes_of(_PROGRAM, f"archive/{owner}", f"Letta: archival memory of {owner}")
        at = passage.get("created_at") or passage.get("updated_at")
        yield note(
            f"archive/{owner}", name, text, at, {key: passage.get(key) for key in ("tags", "metadata", "source_id")}
        )
