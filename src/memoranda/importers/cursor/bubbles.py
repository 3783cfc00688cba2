"""Bubbles, as Cursor calls its messages: words, thoughts and tool calls in chat form."""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import (
    answered,
    called,
    field,
    fingerprint,
    objects,
    said,
    text_field,
    thought,
    words,
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
    if shown := text_field(bubble, "thinking", "text") or text_field(bubble, "thinking"):
        made.append(thought(shown, f"{name}:thought", when))
    text = text_field(bubble, "text") or text_field(bubble, "rawText")
    if text is None and role == "assistant":
        blocks = [text_field(block, "content") for block in objects(bubble.get("codeBlocks"))]
        text = "\n\n".join(f"```\n{block}\n```" for block in blocks if block) or None
    if text:
        made.append(said(role, text, name, when))
    if isinstance(bubble.get("toolFormerData"), dict):
        made += _tool(bubble["toolFormerData"], name, when)
    yield from made
    if not made:
        yield Skipped("bubble without words")


def is_ended(bubble: Bubble) -> bool:
    """Whether a bubble says that nothing will be added to it."""
    return field(bubble, "toolFormerData", "status") not in _UNENDED


def model_of(bubble: Bubble) -> str | None:
    """The model that answered, where a bubble names it."""
    return text_field(bubble, "modelInfo", "modelName") or text_field(bubble, "modelType")


def _tool(data: Bubble, name: str, at: Any) -> list[ImportedMessage]:
    """A tool call, and its result when there is one."""
    if not any(data.get(each) for each in ("name", "tool", "rawArgs", "params", "result")):
        return []
    tool = text_field(data, "name") or words(data.get("tool"))
    arguments = data.get("rawArgs") or data.get("params") or {}
    call_id = text_field(data, "toolCallId") or fingerprint(name)
    made = [called((call_id, tool, arguments), f"{name}:call", at)]
    if result := words(data.get("result") or data.get("error")):
        made.append(answered((call_id, tool), result, f"{name}:result", at))
    return made


def _when(bubble: Bubble) -> Any:
    for path in (("createdAt",), ("timingInfo", "clientStartTime"), ("timingInfo", "startedAt")):
        if found := field(bubble, *path):
            return found
    return None
