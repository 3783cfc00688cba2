"""Converts bubbles, as Cursor calls its messages: text, reasoning and tool calls."""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    dicts_in,
    get_field,
    get_text,
    reasoning_message,
    short_digest,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.reader_protocol import ImportedMessage, ReadEvent, Skipped

Bubble = dict[str, Any]
_ROLES = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}
_UNFINISHED = ("loading", "running", "pending", "generating")


def bubble_events(bubble: Bubble, name: str, at: Any, *, ended: bool) -> Iterator[ReadEvent]:
    """Yield the content of a bubble; one that Cursor is still writing (not `ended`) is left for the next import."""
    role = _ROLES.get(bubble.get("type") if isinstance(bubble.get("type"), int | str) else "")
    timestamp = _timestamp(bubble) or at
    if role is None:
        yield Skipped(f"bubble ({str(bubble.get('type'))[:40]})")
        return
    if not ended:
        yield Skipped("still being written")
        return
    messages: list[ImportedMessage] = []
    if reasoning := get_text(bubble, "thinking", "text") or get_text(bubble, "thinking"):
        messages.append(reasoning_message(reasoning, f"{name}:thought", timestamp))
    text = get_text(bubble, "text") or get_text(bubble, "rawText")
    if text is None and role == "assistant":
        blocks = [get_text(block, "content") for block in dicts_in(bubble.get("codeBlocks"))]
        text = "\n\n".join(f"```\n{block}\n```" for block in blocks if block) or None
    if text:
        messages.append(text_message(role, text, name, timestamp))
    if isinstance(bubble.get("toolFormerData"), dict):
        messages += _tool_messages(bubble["toolFormerData"], name, timestamp)
    yield from messages
    if not messages:
        yield Skipped("bubble without text")


def is_ended(bubble: Bubble) -> bool:
    """Whether Cursor will add nothing more to a bubble."""
    return get_field(bubble, "toolFormerData", "status") not in _UNFINISHED


def model_of(bubble: Bubble) -> str | None:
    """Return the model that answered, if the bubble names it."""
    return get_text(bubble, "modelInfo", "modelName") or get_text(bubble, "modelType")


def _tool_messages(data: Bubble, name: str, at: Any) -> list[ImportedMessage]:
    """Convert a tool call, with its result if there is one."""
    if not any(data.get(field) for field in ("name", "tool", "rawArgs", "params", "result")):
        return []
    tool = get_text(data, "name") or as_text(data.get("tool"))
    arguments = data.get("rawArgs") or data.get("params") or {}
    call_id = get_text(data, "toolCallId") or short_digest(name)
    messages = [tool_call_message((call_id, tool, arguments), f"{name}:call", at)]
    if result := as_text(data.get("result") or data.get("error")):
        messages.append(tool_result_message((call_id, tool), result, f"{name}:result", at))
    return messages


def _timestamp(bubble: Bubble) -> Any:
    for path in (("createdAt",), ("timingInfo", "clientStartTime"), ("timingInfo", "startedAt")):
        if found := get_field(bubble, *path):
            return found
    return None
