"""Converts the messages of Cursor's agent, which have a role and content in parts."""

import re
from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    dicts_in,
    get_text,
    reasoning_message,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.reader_protocol import ImportedMessage, ReadEvent, Skipped

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_WORKSPACE = re.compile(r"^Workspace Path: *(\S.*?) *$", re.MULTILINE)
_CONTEXT = re.compile(
    r"\s*<(user_info|system_reminder|open_and_recently_viewed_files|git_status|project_layout|rules)\b"
)
_CALLS = ("tool-call", "tool_use", "tool_call")
_RESULTS = ("tool-result", "tool_result")


def message_events(message: dict[str, Any], name: str, at: Any, line: int | None = None) -> Iterator[ReadEvent]:
    """Yield the parts of a message, each with its own id."""
    role = message.get("role")
    content = message.get("content")
    parts = dicts_in(content) if isinstance(content, list) else [{"type": "text", "text": as_text(content)}]
    if role not in ("user", "assistant", "tool"):
        yield Skipped(f"instructions of the program ({str(role)[:40]})")
        return
    messages: list[ImportedMessage] = []
    skipped_parts = 0
    for number, part in enumerate(parts):
        part_id = f"{name}:{number}" if number else name
        entry = _convert_part(str(role), part, part_id, at, line)
        skipped_parts += entry is None
        messages += [entry] if entry is not None else []
    yield from messages
    if not messages:
        yield Skipped("context given by the program" if skipped_parts else "message without text")


def directory_in(message: dict[str, Any]) -> str | None:
    """Return the directory that the program names to the model at the start."""
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [as_text(part.get("text")) for part in dicts_in(content)]
    found = next((match for text in texts if (match := _WORKSPACE.search(text))), None)
    return found[1] if found else None


def _convert_part(role: str, part: dict[str, Any], name: str, at: Any, line: int | None) -> ImportedMessage | None:
    kind = part.get("type")
    call_id = as_text(part.get("toolCallId") or part.get("tool_use_id") or part.get("id")) or name
    tool = as_text(part.get("toolName") or part.get("name"))
    if kind in _CALLS:
        return tool_call_message((call_id, tool, part.get("args", part.get("input"))), name, at, line)
    if kind in _RESULTS:
        result = part.get("result", part.get("content"))
        texts = [as_text(entry.get("text")) for entry in dicts_in(result)]
        return tool_result_message((call_id, tool), "\n".join(filter(None, texts)) or as_text(result), name, at, line)
    text = get_text(part, "text")
    if text is None:
        return text_message(role, f"[{kind}, not imported]", name, at, line) if kind in ("image", "file") else None
    if kind in ("reasoning", "thinking"):
        return reasoning_message(text, name, at, line)
    if role == "user":
        query = "\n\n".join(_QUERY.findall(text))
        if not query and _CONTEXT.match(text):
            return None
        text = query or text
    return text_message(role, text, name, at, line)
