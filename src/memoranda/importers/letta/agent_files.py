"""Reads agent files of Letta (`.af`): an agent's messages become a session, and its memory blocks become notes.

What a block says about the user and about the agent is proposed for curated memory, too. The source code of tools in
the file is not read. Ids in it (`agent-0`, `message-3`) are new in every export, so an agent is known by its name,
and a message by its time and text.
"""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import dicts_in, get_text, parse_timestamp, short_digest, to_json
from memoranda.importers.letta.core_memory import PROGRAM, propose
from memoranda.importers.letta.server_messages import server_events, thinks_aloud
from memoranda.importers.notes import note, notes_of
from memoranda.importers.reader_protocol import ImportedConversation, ReadEvent


def read_agents(file: dict[str, Any]) -> Iterator[ReadEvent]:
    """Yield the agents of a file: of each its blocks, then its messages."""
    blocks = {block.get("id"): block for block in dicts_in(file.get("blocks"))}
    for agent in dicts_in(file["agents"]):
        name = get_text(agent, "name") or "agent"
        listed = agent.get("block_ids")
        own = (
            [blocks[key] for key in listed if isinstance(key, str) and key in blocks]
            if isinstance(listed, list)
            else []
        )
        yield notes_of(PROGRAM, name, f"Letta: memory of {name}")
        for block in [*own, *dicts_in(agent.get("memory_blocks"))]:
            label, text = get_text(block, "label") or "block", get_text(block, "value")
            if text:
                origin = {field: block.get(field) for field in ("description", "limit", "read_only")}
                yield note(name, label, text.strip(), file.get("created_at"), {"label": label, **origin})
                yield from propose(label, text.strip(), name)
        yield ImportedConversation(name, f"Letta: {name}", get_text(agent, "llm_config", "model"))
        messages = _in_order(dicts_in(agent.get("messages")))
        aloud = thinks_aloud(messages)
        for message in messages:
            at = message.get("created_at")
            known_by = short_digest(str(at), to_json([message.get("role"), message.get("content")]))
            yield from server_events(message, f"{name}:{known_by}", at, aloud=aloud)


def _in_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages by their time: the server writes some, and then the others that the agent still sees."""
    times = [parse_timestamp(message.get("created_at")) for message in messages]
    if None in times:
        return messages
    return sorted(messages, key=lambda message: parse_timestamp(message["created_at"]) or 0.0)
