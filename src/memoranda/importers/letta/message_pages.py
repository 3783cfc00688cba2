"""Reads saved pages of an agent's messages, which Letta's server answers with, as a session.

An agent file has the latest messages only, so these pages are the way to have all of them. What a message is, its
`message_type` says; the parts of one step, such as a thought and a call of a tool, have the same id. Messages do not
name their agent, so the session has the name of the file.
"""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    dicts_in,
    get_text,
    parse_timestamp,
    reasoning_message,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.content_parts import content_text
from memoranda.importers.letta.server_messages import user_events
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, ReadEvent, Skipped


def messages_on(value: Any) -> list[dict[str, Any]]:
    """Return the messages on a page, the oldest first; the server's default order depends on its version."""
    listed = value.get("messages") if isinstance(value, dict) else value
    found = [entry for entry in dicts_in(listed) if "message_type" in entry]
    times = [parse_timestamp(entry.get("date")) or 0.0 for entry in found]
    if times and times[0] > times[-1]:
        found.reverse()
    return found


def read_messages(item: ImportItem, messages: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    """Yield the session of a page and its messages."""
    name = item.file.stem
    yield ImportedConversation(name, f"Letta: {name}")
    for message in messages:
        yield from _events(message, f"{name}:{message.get('id')}")


def _events(message: dict[str, Any], name: str) -> Iterator[ReadEvent]:
    kind, at, text = message.get("message_type"), message.get("date"), content_text(message.get("content"))
    if kind == "user_message":
        yield from user_events(text, name, at)
    elif kind == "assistant_message" and text.strip():
        yield text_message("assistant", text, name, at)
    elif kind == "reasoning_message" and (thought := get_text(message, "reasoning")):
        yield reasoning_message(thought, f"{name}/thought", at)
    elif kind == "tool_call_message":
        calls = dicts_in(message.get("tool_calls")) or dicts_in([message.get("tool_call")])
        for call in calls:
            call_id = str(call.get("tool_call_id"))
            yield tool_call_message((call_id, str(call.get("name")), call.get("arguments")), f"{name}/{call_id}", at)
    elif kind == "tool_return_message":
        answered = str(message.get("tool_call_id"))
        result = as_text(message.get("tool_return"))
        yield tool_result_message((answered, get_text(message, "name") or ""), result, f"{name}/{answered}", at)
    elif kind == "system_message":
        yield Skipped("instructions of a program")
    else:
        yield Skipped(f"message without text: {str(kind)[:40]}")
