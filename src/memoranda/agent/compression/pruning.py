"""Shortens old tool output and tool arguments without a model; the record keeps the full text."""

import json
from collections.abc import Mapping
from typing import Any

from memoranda.memory.record.message_references import IMAGE_TAKEN_OUT, TAKEN_OUT
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.model import Message
from memoranda.support.shorten import shorten_end, shorten_middle

LONG_OUTPUT = 800
_LONG_ARGUMENTS = 1_000
_LONG_VALUE = 200
# Services need the model's reasoning back only within a turn.
_REASONING_FIELDS = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
)


def prune_message(
    live: LiveMessage, session_id: str, max_chars: int = LONG_OUTPUT, *, thinking: bool = False
) -> Message | None:
    """The shortened message, with a note that says how to read all of it; None if there is nothing to shorten.

    Tool output of more than `max_chars` characters is shortened. With `thinking` the model's reasoning stays.
    """
    message = live.message
    changed: dict[str, Any] = {}
    if message.get("role") == "tool":
        text = text_of(message.get("content"))
        if len(text) > max_chars:
            tool = str(message.get("tool_name") or "a tool")
            changed["content"] = _shorten_output(text, max_chars // 3, tool, live.recorded_id, session_id)
    else:
        content = _without_images(message.get("content"), live.recorded_id)
        # The model works on an image that it has just been shown, so images stay with `thinking`.
        if content is not message.get("content") and not thinking:
            changed["content"] = content
    calls = _shorten_calls(message.get("tool_calls"))
    if calls is not None:
        changed["tool_calls"] = calls
    dropped = [] if thinking else [name for name in _REASONING_FIELDS if message.get(name)]
    if not changed and not dropped:
        return None
    return {name: value for name, value in message.items() if name not in dropped} | changed


def _shorten_output(text: str, end_chars: int, tool: str, message_id: int, session_id: str) -> str:
    """Keeps `end_chars` characters at either end."""
    where = f'session_search with session_id "{session_id}" and ' if session_id else "session_search with "
    source = f"All of it is message {message_id}: {where}around_message_id {message_id} shows it."
    tool, source = (words.replace("{", "{{").replace("}", "}}") for words in (tool, source))
    note = f"\n[… {{omitted:,}} of {{total:,}} characters of the output of {tool} {TAKEN_OUT}. {source} …]\n"
    return shorten_middle(text, 2 * end_chars + len(note), note, head_share=0.5)


def _without_images(content: Any, message_id: int) -> Any:
    """The content with a note in place of each image; the same object if there is none."""
    if not isinstance(content, list) or not any(map(_is_image, content)):
        return content
    note = {"type": "text", "text": f"[{IMAGE_TAKEN_OUT} {message_id}]"}
    return [note if _is_image(part) else part for part in content]


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and "image" in str(part.get("type", ""))


def _shorten_calls(calls: Any) -> list[Any] | None:
    """The tool calls with the long texts in their arguments shortened; None if nothing changed."""
    if not isinstance(calls, list):
        return None
    shortened = [_shorten_call(call) for call in calls]
    return shortened if any(new is not old for new, old in zip(shortened, calls, strict=True)) else None


def _shorten_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(arguments, str) or len(arguments) <= _LONG_ARGUMENTS:
        return call
    try:
        shorter: Any = _shorten_texts(json.loads(arguments))
    except (ValueError, RecursionError):
        # The model wrote invalid JSON, but the replacement must be valid.
        shorter = {"shortened": shorten_end(arguments, _LONG_VALUE)}
    return {**call, "function": {**function, "arguments": json.dumps(shorter, ensure_ascii=False)}}  # type: ignore[dict-item]


def _shorten_texts(value: Any) -> Any:
    if isinstance(value, str):
        return shorten_end(value, _LONG_VALUE, f"… [{len(value):,} characters]")
    if isinstance(value, list):
        return [_shorten_texts(item) for item in value]
    if isinstance(value, dict):
        return {name: _shorten_texts(item) for name, item in value.items()}
    return value
