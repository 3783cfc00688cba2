"""Converts messages of Letta's server: those of an agent file, and those that its API answers with.

The server wraps some texts in JSON: `{"type": "user_message", "message": …}` around the words of a user, and
`{"status": "OK", "message": …}` around the result of a tool. An agent of the MemGPT kind speaks by calling the tool
`send_message`, and the text of its messages is what it thinks.
"""

import json
from collections.abc import Iterator
from typing import Any

from memoranda.importers.agent_messages import chat_events
from memoranda.importers.chat_messages import as_text, dicts_in, get_field, get_text, reasoning_message, text_message
from memoranda.importers.content_parts import content_text
from memoranda.importers.reader_protocol import ReadEvent, Skipped

_SPEAK = "send_message"
_EVENTS = frozenset({"login", "heartbeat"})


def thinks_aloud(messages: list[dict[str, Any]]) -> bool:
    """Whether the texts of an agent are its thoughts, because it speaks with a tool."""
    return any(get_text(call, "function", "name") == _SPEAK for message in messages for call in _calls(message))


def server_events(message: dict[str, Any], name: str, at: Any, *, aloud: bool) -> Iterator[ReadEvent]:
    """Yield the messages of one message; `aloud` says that the agent's texts are thoughts."""
    text = content_text(message.get("content"))
    if message.get("role") == "user":
        yield from user_events(text, name, at)
    elif message.get("role") == "tool" and message.get("name") == _SPEAK:
        yield Skipped(f"result of {_SPEAK}")
    elif message.get("role") == "tool":
        yield from chat_events(message, name, at, result_text(text))
    elif message.get("role") == "assistant" and aloud and _calls(message):
        yield from _thought_and_words(message, text, name, at)
    else:
        yield from chat_events(message, name, at, text)


def user_events(text: str, name: str, at: Any) -> Iterator[ReadEvent]:
    """Yield the words of a user, or the summary of earlier messages; other messages of the server are skipped."""
    packed = _unpack(text)
    kind, inner = packed.get("type"), get_text(packed, "message")
    if kind in _EVENTS:
        yield Skipped("event of the server")
    elif kind == "system_alert" and inner:
        yield text_message("user", inner, name, at, is_summary=True)
    elif kind == "user_message" and inner:
        yield text_message("user", inner, name, at)
    else:
        yield from chat_events({"role": "user"}, name, at, text)


def result_text(text: str) -> str:
    """Return what a tool returned, without what the server wraps it in."""
    packed = _unpack(text)
    return as_text(packed["message"]) if {"status", "message"} <= packed.keys() else text


def _thought_and_words(message: dict[str, Any], text: str, name: str, at: Any) -> Iterator[ReadEvent]:
    if text.strip():
        yield reasoning_message(text, f"{name}/thought", at)
    others = []
    for number, call in enumerate(_calls(message)):
        words = get_text(_unpack(get_field(call, "function", "arguments")), "message")
        if get_text(call, "function", "name") == _SPEAK and words:
            yield text_message("assistant", words, f"{name}/{number}" if number else name, at)
        else:
            others.append(call)
    if others:
        yield from chat_events({"role": "assistant", "tool_calls": others}, name, at)


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts_in(message.get("tool_calls"))


def _unpack(text: Any) -> dict[str, Any]:
    """Return the object that a text is in JSON; an empty one for other texts."""
    try:
        value = json.loads(text) if isinstance(text, str) and text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
