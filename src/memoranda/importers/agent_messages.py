"""Builds messages from those of chat APIs: OpenAI's, Anthropic's, and what agents store of them.

One such message may contain text, reasoning, calls of tools and their results; each of these becomes a message.
"""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    dicts_in,
    get_field,
    get_text,
    reasoning_message,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.content_parts import content_text
from memoranda.importers.reader_protocol import ImportedMessage, ReadEvent, Skipped

# A model thinks and gets results before it speaks, and calls tools after that.
_BEFORE_TEXT = frozenset({"thinking", "reasoning", "tool_result"})
_AFTER_TEXT = frozenset({"tool_use"})
_ROLES = {"user": "user", "assistant": "assistant", "human": "user", "ai": "assistant"}


def chat_events(message: dict[str, Any], name: str, at: Any, text: str | None = None) -> Iterator[ReadEvent]:
    """Yield the messages of one message of a chat API; `text` replaces its text. Instructions are skipped."""
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer"):
        yield Skipped("instructions of a program")
        return
    text = content_text(content) if text is None else text
    if role in ("tool", "function"):
        call = (str(message.get("tool_call_id") or name), str(message.get("name") or ""))
        yield tool_result_message(call, text, name, at)
        return
    before = list(_part_messages(content, _BEFORE_TEXT, name, at))
    after = [*_part_messages(content, _AFTER_TEXT, name, at), *_call_messages(message, name, at)]
    yield from before
    if text.strip():
        yield text_message(_ROLES.get(str(role), "assistant"), text, name, at)
    elif not before and not after:
        yield Skipped("message without text")
    yield from after


def _part_messages(content: Any, kinds: frozenset[str], name: str, at: Any) -> Iterator[ImportedMessage]:
    for number, part in enumerate(dicts_in(content)):
        own, kind = f"{name}/{number}", part.get("type")
        if kind not in kinds:
            continue
        if kind in ("thinking", "reasoning"):
            shown = get_text(part, "thinking") or get_text(part, "reasoning") or get_text(part, "text")
            if shown:
                yield reasoning_message(shown, own, at)
        elif kind == "tool_use":
            yield tool_call_message((str(part.get("id")), str(part.get("name")), part.get("input")), own, at)
        elif kind == "tool_result":
            result = part.get("content")
            shown = content_text(result) if isinstance(result, list) else as_text(result)
            yield tool_result_message((str(part.get("tool_use_id")), ""), shown, own, at)


def _call_messages(message: dict[str, Any], name: str, at: Any) -> Iterator[ImportedMessage]:
    """Yield the calls in the field `tool_calls`, which some programs spell `toolCalls`."""
    for number, call in enumerate(dicts_in(message.get("tool_calls") or message.get("toolCalls"))):
        tool = get_text(call, "function", "name") or get_text(call, "name") or "unknown"
        arguments = get_field(call, "function", "arguments")
        yield tool_call_message((str(call.get("id") or name), tool, arguments), f"{name}/call{number}", at)
