"""Builds messages in chat form from the values that other programs write: text, reasoning, tool calls, timestamps.

A message of a chat API (OpenAI's, Anthropic's, and what agents store of them) has a text or a list of typed parts as
its content. It may contain text, reasoning, calls of tools and their results; each of these becomes a message.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from memoranda.importers.reader_protocol import ImportedMessage, ReadEvent, Skipped
from memoranda.support.lazy_pattern import compile_later

# Seconds of the year 5138; larger numbers are milliseconds, and larger ones still are micro- or nanoseconds.
_MAX_SECONDS = 1e11
_MAX_TIMESTAMP = 1e21
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "summary_text", "refusal"})
# Parts that become messages of their own.
SEPARATE_PARTS = frozenset({"tool_use", "tool_call", "tool_result", "thinking", "redacted_thinking", "reasoning"})
# A model thinks and gets results before it speaks, and calls tools after that.
_BEFORE_TEXT = frozenset({"thinking", "reasoning", "tool_result"})
_AFTER_TEXT = frozenset({"tool_use"})
_THINKING = compile_later(r"(?s)\s*<think>(.*?)(?:</think>|\Z)\s*(.*)")
_ROLES = {"user": "user", "assistant": "assistant", "human": "user", "ai": "assistant"}


def text_message(
    role: str, text: str, external_id: str, at: Any, line: int | None = None, **more: Any
) -> ImportedMessage:
    """Build a message with text; `at` is its timestamp in any form that `parse_timestamp` reads."""
    return ImportedMessage({"role": role, "content": text, "external_id": external_id, "timestamp": at, **more}, line)


def reasoning_message(text: str, external_id: str, at: Any, line: int | None = None) -> ImportedMessage:
    """Build a message with the reasoning that the model showed."""
    return text_message("assistant", "", external_id, at, line, reasoning=text)


def tool_call_message(
    call: tuple[str, str, Any], external_id: str, at: Any, line: int | None = None
) -> ImportedMessage:
    """Build a tool call of the assistant: call id, tool name, and the arguments as JSON text or as a value."""
    return text_message("assistant", "", external_id, at, line, tool_calls=[tool_call(*call)])


def tool_call(call_id: str, tool: str, arguments: Any) -> dict[str, Any]:
    """Build a tool call as it appears in a message; the arguments are JSON text or a value."""
    text = arguments if isinstance(arguments, str) else to_json({} if arguments is None else arguments)
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": text}}


def tool_result_message(
    call: tuple[str, str], text: str, external_id: str, at: Any, line: int | None = None
) -> ImportedMessage:
    """Build the result of a tool: the id of the call, the tool's name or "", and the result as text."""
    call_id, tool = call
    more = {"tool_name": tool} if tool else {}
    return text_message("tool", text, external_id, at, line, tool_call_id=call_id, **more)


def as_text(value: Any) -> str:
    """Return text unchanged, "" for None, and everything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else to_json(value)


to_json = json.JSONEncoder(ensure_ascii=False).encode
"""A value as JSON; `json.dumps` would make an encoder for every call."""


def short_digest(*values: str) -> str:
    """Return a short id made from values that have no id; different values get different ids."""
    *before, last = values
    found = hashlib.sha256("\x00".join([*before, ""]).encode("utf-8", "surrogatepass"))
    # Not joined: a copy of a very long text would cost as much as the text.
    found.update(last.encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:24]


def get_field(value: Any, *names: str) -> Any:
    """Return the value at a path of names in nested objects; None when a name is missing."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def get_text(value: Any, *names: str) -> str | None:
    """Return the text at a path of names; None when it is missing, blank or not text."""
    found = get_field(value, *names)
    return found if isinstance(found, str) and found.strip() else None


def dicts_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; an empty list for any other value."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def parse_timestamp(value: Any) -> float | None:
    """Return seconds since 1970 from ISO 8601 text or a number of seconds, milli-, micro- or nanoseconds.

    Text without a time zone is UTC. Returns None for anything else.
    """
    if isinstance(value, str):
        return _parse_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MAX_TIMESTAMP:
        return None
    while value >= _MAX_SECONDS:
        value /= 1000
    return float(value)


def _parse_text(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        try:
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (OverflowError, OSError, ValueError):
            return None
    try:
        return parse_timestamp(float(text))
    except ValueError:
        return None


def content_text(content: Any) -> str:
    """Return the text of a content; a line stands for each part that is not text, such as an image."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return "\n".join(text for part in parts if (text := _part_text(part)))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = part.get("type", "text")
    if kind in _TEXT_PARTS:
        return get_text(part, "text") or get_text(part, "refusal") or ""
    return "" if kind in SEPARATE_PARTS else f"[{kind}: not imported]"


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


def part_events(role: str, parts: Sequence[dict[str, Any]], name: str, at: Any) -> Iterator[ReadEvent]:
    """Yield the parts of a message in their order: neighbouring texts as one message, other parts as one each."""
    runs = groupby(enumerate(parts), lambda numbered: numbered[0] if numbered[1].get("type") in SEPARATE_PARTS else -1)
    for number, (_, run) in enumerate(runs):
        message = {"role": role, "content": [part for _, part in run]}
        yield from chat_events(message, f"{name}/{number}" if number else name, at)
    if not parts:
        yield Skipped("message without text")


def text_parts(text: str) -> list[dict[str, Any]]:
    """Return a text as parts of a message; models write their reasoning between `<think>` and `</think>` before it."""
    found = _THINKING.fullmatch(text)
    if found is None:
        return [{"type": "text", "text": text}]
    parts = [{"type": "thinking", "thinking": found[1].strip()}, {"type": "text", "text": found[2]}]
    return [part for part in parts if part.get("thinking") or part.get("text")]


def call_parts(call: tuple[str, str, Any], result: Any) -> list[dict[str, Any]]:
    """Return a call of a tool (id, name, arguments) and its result, if there is one, as parts of a message."""
    call_id, tool, arguments = call
    parts = [{"type": "tool_use", "id": call_id, "name": tool, "input": arguments}]
    if result not in (None, "", [], {}):
        parts.append({"type": "tool_result", "tool_use_id": call_id, "name": tool, "content": result})
    return parts


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
            # Only parts that a reader made have the name of the tool.
            yield tool_result_message((str(part.get("tool_use_id")), str(part.get("name") or "")), shown, own, at)


def _call_messages(message: dict[str, Any], name: str, at: Any) -> Iterator[ImportedMessage]:
    """Yield the calls in the field `tool_calls`, which some programs spell `toolCalls`."""
    for number, call in enumerate(dicts_in(message.get("tool_calls") or message.get("toolCalls"))):
        tool = get_text(call, "function", "name") or get_text(call, "name") or "unknown"
        arguments = get_field(call, "function", "arguments")
        yield tool_call_message((str(call.get("id") or name), tool, arguments), f"{name}/call{number}", at)
