"""Messages in chat form, made of what other programs write: words, thoughts, tool calls and their results."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from memoranda.importers.reader_protocol import ImportedMessage

Message = dict[str, Any]


def said(role: str, text: str, name: str, at: Any, line: int | None = None, **more: Any) -> ImportedMessage:
    """Words of somebody; `name` is the message's external id, `at` when it was said, however that is written."""
    return ImportedMessage({"role": role, "content": text, "external_id": name, "timestamp": at, **more}, line)


def thought(text: str, name: str, at: Any, line: int | None = None) -> ImportedMessage:
    """What the model let be seen of its reasoning."""
    return said("assistant", "", name, at, line, reasoning=text)


def called(call: tuple[str, str, Any], name: str, at: Any, line: int | None = None) -> ImportedMessage:
    """A tool call of the assistant: its id, the tool, and the arguments as JSON text or as a value."""
    call_id, tool, arguments = call
    text = arguments if isinstance(arguments, str) else as_json({} if arguments is None else arguments)
    function = {"name": tool, "arguments": text}
    return said("assistant", "", name, at, line, tool_calls=[{"id": call_id, "type": "function", "function": function}])


def answered(call: tuple[str, str], text: str, name: str, at: Any, line: int | None = None) -> ImportedMessage:
    """What a tool gave back: the id of the call, the tool's name if it is known, and the result as text."""
    call_id, tool = call
    more = {"tool_name": tool} if tool else {}
    return said("tool", text, name, at, line, tool_call_id=call_id, **more)


def words(value: Any) -> str:
    """A value as text: text as it is, nothing as nothing, everything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else as_json(value)


def as_json(value: Any) -> str:
    """A value as JSON text that people can read."""
    return json.dumps(value, ensure_ascii=False)


def fingerprint(*values: str) -> str:
    """A short name for what has none of its own; other values have another one."""
    return hashlib.sha256("\x00".join(values).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def field(value: Any, *names: str) -> Any:
    """What lies at a path of names in nested objects; None when there is no such thing."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text_field(value: Any, *names: str) -> str | None:
    """The text at a path of names; None when there is none, or it is empty or no text."""
    found = field(value, *names)
    return found if isinstance(found, str) and found.strip() else None


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; of anything else, none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# Seconds of the year 5138; larger numbers are milliseconds, and larger ones still are micro- or nanoseconds.
_LARGEST_SECONDS = 1e11
_LARGEST = 1e21


def parse_timestamp(value: Any) -> float | None:
    """Seconds since 1970, or None when it is no moment; text without a time zone is UTC."""
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST:
        return None
    while value >= _LARGEST_SECONDS:
        value /= 1000
    return float(value)


def _from_text(text: str) -> float | None:
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
