"""Reads sessions of the OpenAI Agents SDK from the database of its `SQLiteSession`.

Each row is an item of the Responses API: a message, a call of a tool, its output, or reasoning.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    content_text,
    dicts_in,
    get_text,
    reasoning_message,
    short_digest,
    text_message,
    to_json,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, Problem, ReadEvent
from memoranda.importers.source_databases import find_databases, read_database, rows
from memoranda.memory.record.framework_objects import object_fields
from memoranda.support.json_object import parse_object

# The names that the SDK uses unless a program chooses others.
_SESSIONS, _MESSAGES = "agent_sessions", "agent_messages"
_ROLES = ("user", "assistant", "system", "developer")
_QUERY = f"SELECT id, session_id, message_data, created_at FROM {_MESSAGES} ORDER BY session_id, id"


class OpenAIAgents:
    name = "openai-agents"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the databases under a path; the SDK has no directory of its own."""
        return find_databases(path, [_MESSAGES], "sessions") if path is not None else []

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        required = {_MESSAGES: ("session_id", "message_data", "created_at")}
        return read_database(item, "the OpenAI Agents SDK", required, partial(_sessions, item))


def _sessions(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    current = None
    for number, session, data, at in rows(connection, _QUERY):
        if session != current:
            current = session
            yield ImportedConversation(str(session), names=(str(session),))
        yield _event(item, f"{session}:{number}:{short_digest(str(at), str(data))[:12]}", data, at)


def _event(item: ImportItem, name: str, data: Any, at: Any) -> ReadEvent:
    value = parse_object(data)
    if value is None:
        return Problem(item.file, None, f"item {name} is not a JSON object")
    found = response_item(value, name, at)
    fields = found.message if isinstance(found, ImportedMessage) else text_message("", "", name, at).message
    # Every item stays an item, as our adapter stores it: a session continues with all that the model has seen.
    path = "output" if "output" in value and str(value.get("type")).endswith("_output") else "content"
    kept = object_fields(value, (path,) if path in value else ())
    role = value.get("role") if value.get("role") in _ROLES else fields["role"] or "assistant"
    return ImportedMessage({**fields, **kept, "role": role})


def response_item(value: dict[str, Any], name: str, at: Any) -> ImportedMessage | None:
    """Return an item of the Responses API as a message; None when it has no text."""
    kind, role = value.get("type", "message"), value.get("role")
    if kind == "message":
        text = content_text(value.get("content"))
        return text_message(role if role in ("user", "assistant") else "assistant", text, name, at) if text else None
    if kind == "function_call":
        call = (str(value.get("call_id")), str(value.get("name")), value.get("arguments"))
        return tool_call_message(call, name, at)
    if kind == "function_call_output":
        output = value.get("output")
        text = content_text(output) if isinstance(output, list) else as_text(output)
        return tool_result_message((str(value.get("call_id")), ""), text, name, at)
    if kind == "reasoning":
        text = "\n".join(part for entry in dicts_in(value.get("summary")) if (part := get_text(entry, "text")))
        return reasoning_message(text, name, at) if text else None
    call_id = str(value.get("call_id") or value.get("id") or name)
    if isinstance(kind, str) and kind.endswith("_output"):
        return tool_result_message((call_id, kind.removesuffix("_output")), as_text(value.get("output")), name, at)
    # Calls of hosted tools: web search, computer, file search and later ones.
    arguments = {key: given for key, given in value.items() if key not in ("type", "id", "call_id", "status")}
    return tool_call_message((call_id, str(kind), to_json(arguments)), name, at)
