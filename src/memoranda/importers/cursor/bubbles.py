"""Bubbles, as Cursor calls its messages: words, thoughts and tool calls in chat form."""

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
_UNENDED = ("loading", "running", "pending", "generating")


def given_by(bubble: Bubble, name: str, at: Any, *, ended: bool) -> Iterator[ReadEvent]:
    """Everything that a bubble holds; one that is being written (not `ended`) is left for the next time."""
    role = _ROLES.get(bubble.get("type") if isinstance(bubble.get("type"), int | str) else "")
    when = _when(bubble) or at
    if role is None:
        yield Skipped(f"bubble ({str(bubble.get('type'))[:40]})")
        return
    if not ended:
        yield Skipped("still being written")
        return
    made: list[ImportedMessage] = []
    if shown := get_text(bubble, "thinking", "text") or get_text(bubble, "thinking"):
        made.append(reasoning_message(shown, f"{name}:thought", when))
    text = get_text(bubble, "text") or get_text(bubble, "rawText")
    if text is None and role == "assistant":
        blocks = [get_text(block, "content") for block in dicts_in(bubble.get("codeBlocks"))]
        text = "\n\n".join(f"```\n{block}\n```" for block in blocks if block) or None
    if text:
        made.append(text_message(role, text, name, when))
    if isinstance(bubble.get("toolFormerData"), dict):
        made += _tool(bubble["toolFormerData"], name, when)
    yield from made
    if not made:
        yield Skipped("bubble without words")


def is_ended(bubble: Bubble) -> bool:
    """Whether a bubble says that nothing will be added to it."""
    return get_field(bubble, "toolFormerData", "status") not in _UNENDED


def model_of(bubble: Bubble) -> str | None:
    """The model that answered, where a bubble names it."""
    return get_text(bubble, "modelInfo", "modelName") or get_text(bubble, "modelType")


def _tool(data: Bubble, name: str, at: Any) -> list[ImportedMessage]:
    """A tool call, and its result when there is one."""
    if not any(data.get(each) for each in ("name", "tool", "rawArgs", "params", "result")):
        return []
    tool = get_text(data, "name") or as_text(data.get("tool"))
    arguments = data.get("rawArgs") or data.get("params") or {}
    call_id = get_text(data, "toolCallId") or short_digest(name)
    made = [tool_call_message((call_id, tool, arguments), f"{name}:call", at)]
    if result := as_text(data.get("result") or data.get("error")):
        made.append(tool_result_message((call_id, tool), result, f"{name}:result", at))
    return made


def _when(bubble: Bubble) -> Any:
    for path in (("createdAt",), ("timingInfo", "clientStartTime"), ("timingInfo", "startedAt")):
        if found := get_field(bubble, *path):
            return found
    return None
