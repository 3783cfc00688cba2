"""Builds messages in chat form from the values that other programs write: text, reasoning, tool calls, timestamps."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from memoranda.importers.reader_protocol import ImportedMessage

# Seconds of the year 5138; larger numbers are milliseconds, and larger ones still are micro- or nanoseconds.
_MAX_SECONDS = 1e11
_MAX_TIMESTAMP = 1e21


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
    call_id, tool, arguments = call
    text = arguments if isinstance(arguments, str) else to_json({} if arguments is None else arguments)
    tool_call = {"id": call_id, "type": "function", "function": {"name": tool, "arguments": text}}
    return text_message("assistant", "", external_id, at, line, tool_calls=[tool_call])


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


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def short_digest(*values: str) -> str:
    """Return a short id made from values that have no id; different values get different ids."""
    return hashlib.sha256("\x00".join(values).encode("utf-8", "surrogatepass")).hexdigest()[:24]


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
