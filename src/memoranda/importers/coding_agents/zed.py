"""Reads the threads of Zed's agent from its `threads.db`.

A thread is one JSON document, usually compressed. Its messages have no times: the first one has the time at which the
thread was created, the others have the one of its last change when they are imported.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    call_parts,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    part_events,
    short_digest,
    text_message,
    to_json,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_databases import find_databases, read_database, rows, tables
from memoranda.importers.source_files import is_recently_changed
from memoranda.importers.zstandard import MISSING_LIBRARY, unpack
from memoranda.support.json_object import parse_object

_COLUMNS = ("id", "summary", "updated_at", "created_at", "parent_id", "folder_paths", "data_type", "data")


class Zed:
    name = "zed"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        home = Path.home()
        own = (
            home / ".local" / "share" / "zed",
            home / ".var" / "app" / "dev.zed.Zed" / "data" / "zed",
            home / "Library" / "Application Support" / "Zed",
            home / "AppData" / "Local" / "Zed",
        )
        directories = [path] if path is not None else [directory / "threads" for directory in own]
        return [item for directory in directories for item in find_databases(directory, ["threads"], "threads")]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        required = {"threads": ("id", "summary", "updated_at", "data_type", "data")}
        return read_database(item, "Zed", required, partial(_threads, item))


def _threads(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    columns = tables(connection)["threads"]
    # Older databases have fewer columns.
    selected = ", ".join(name if name in columns else "NULL" for name in _COLUMNS)
    for row in rows(connection, f"SELECT {selected} FROM threads ORDER BY updated_at, id"):
        thread, title, updated, created, parent, folders, kind, data = row
        value = _document(kind, data)
        if isinstance(value, str):
            yield Problem(item.file, None, f"thread {thread} was not read: {value}", unread=value == MISSING_LIBRARY)
            continue
        started = parse_timestamp(created) or parse_timestamp(updated) or item.modified_at
        yield ImportedConversation(
            str(thread),
            title or None,
            get_text(value, "model", "model"),
            folders.splitlines()[0] if folders else None,
            started,
            parent,
            "delegation" if parent else None,
        )
        messages = value.get("messages")
        yield from _messages(str(thread), messages if isinstance(messages, list) else [], started, updated)


def _document(kind: Any, data: Any) -> dict[str, Any] | str:
    """Return a thread, or why it was not read."""
    if kind == "zstd":
        try:
            data = unpack(data) if isinstance(data, bytes) else None
        except ValueError as error:
            return str(error)
        if data is None:
            return MISSING_LIBRARY
    return parse_object(data) or "it is not a JSON object"


def _messages(thread: str, messages: list[Any], started: float, updated: Any) -> Iterator[ReadEvent]:
    is_open = is_recently_changed(parse_timestamp(updated) or 0.0)
    for number, message in enumerate(messages):
        at = updated if number else started
        user, agent = get_field(message, "User"), get_field(message, "Agent")
        name = f"{thread}:{get_text(user, 'id') or f'{number}:{short_digest(to_json(message))[:12]}'}"
        if isinstance(user, dict):
            yield from part_events("user", [_user_part(part) for part in dicts_in(user.get("content"))], name, at)
        elif is_open and number == len(messages) - 1:
            # The record keeps the first version of a message, so one that may still grow waits for the next import.
            yield Skipped("answer that may still be written")
        elif isinstance(agent, dict):
            yield from part_events("assistant", _agent_parts(agent), name, at)
        elif summary := get_text(message, "Compaction", "Summary"):
            yield text_message("user", summary, name, at, is_summary=True)
        elif get_text(message, "role"):
            # Written before the agent was rewritten in 2025.
            yield from part_events(str(message["role"]), _early_parts(message), name, at)
        else:
            yield Skipped("event of a thread")


def _user_part(part: dict[str, Any]) -> dict[str, Any]:
    text = get_text(part, "Text") or get_text(part, "Mention", "content")
    return {"type": "text", "text": text} if text else {"type": next(iter(part), "part").lower()}


def _agent_parts(agent: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for part in dicts_in(agent.get("content")):
        call = part.get("ToolUse")
        if isinstance(call, dict):
            result = get_field(agent, "tool_results", str(call.get("id")))
            arguments = get_text(call, "raw_input") or call.get("input")
            parts += call_parts((str(call.get("id")), str(call.get("name")), arguments), _result_text(result))
        elif thought := get_text(part, "Thinking", "text"):
            parts.append({"type": "thinking", "thinking": thought})
        elif text := get_text(part, "Text"):
            parts.append({"type": "text", "text": text})
    return parts


def _early_parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    parts = dicts_in(message.get("segments")) or [{"type": "text", "text": get_text(message, "text") or ""}]
    results = {str(result.get("tool_use_id")): result for result in dicts_in(message.get("tool_results"))}
    for call in dicts_in(message.get("tool_uses")):
        result = results.get(str(call.get("id")))
        parts += call_parts((str(call.get("id")), str(call.get("name")), call.get("input")), _result_text(result))
    return parts


def _result_text(result: Any) -> str:
    """Return the result of a tool: a text, one part, or a list of parts, depending on the version."""
    content = get_field(result, "content")
    parts = content if isinstance(content, list) else [content]
    texts = (part if isinstance(part, str) else get_text(part, "Text") or get_text(part, "text") for part in parts)
    return "\n".join(text for text in texts if text)
