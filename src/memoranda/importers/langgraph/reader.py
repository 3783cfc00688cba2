"""Reads LangGraph's SQLite files: the messages of each thread from its checkpoints, and the items of its store.

Every checkpoint repeats all messages so far, so the first one that has a message says when it was said. Items of the
store become notes, one session for each namespace.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import as_text, dicts_in, get_text, text_message, to_json, tool_result_message
from memoranda.importers.content_parts import content_text
from memoranda.importers.langgraph.msgpack_values import read_msgpack
from memoranda.importers.notes import note, notes_of, value_text
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_databases import find_databases, open_database, rows, tables
from memoranda.importers.source_files import MAX_LINE_BYTES

_PROGRAM = "langgraph"
_CHECKPOINTS = (
    "SELECT checkpoint_id, type, length(checkpoint), checkpoint FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id"
)
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "tool": "tool", "function": "tool"}
_TYPES = frozenset({*_ROLES, "system", "remove", "chat"})


class LangGraph:
    """The reader of LangGraph's checkpoints and stores."""

    name = _PROGRAM

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the databases under a path; LangGraph has no directory of its own."""
        return find_databases(path, ("checkpoints", "store"), "database") if path is not None else []

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the threads and the namespaces of a database."""
        try:
            with open_database(item.file) as connection:
                found = tables(connection)
                has_threads = {"thread_id", "checkpoint", "type"} <= found.get("checkpoints", set())
                has_items = {"prefix", "key", "value"} <= found.get("store", set())
                if has_threads:
                    yield from _read_threads(item, connection)
                if has_items:
                    yield from _read_items(item, connection)
                if not has_threads and not has_items:
                    yield Problem(item.file, None, "not a database of LangGraph", unread=True)
        except OSError as error:
            yield Problem(item.file, None, str(error), unread=True)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return "": the program that uses LangGraph resumes its threads."""
        return ""


def _read_threads(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    query = "SELECT thread_id, checkpoint_ns FROM checkpoints GROUP BY 1, 2 ORDER BY min(checkpoint_id)"
    for thread, namespace in connection.execute(query).fetchall():
        # A namespace is a graph inside a graph, which worked for the thread.
        own = f"{thread}/{namespace}" if namespace else str(thread)
        yield ImportedConversation(
            own, parent_host_id=str(thread) if namespace else None, relation="delegation" if namespace else None
        )
        seen: set[str] = set()
        for name, kind, size, blob in rows(connection, _CHECKPOINTS, (thread, namespace)):
            checkpoint = _checkpoint(kind, blob) if size and size <= MAX_LINE_BYTES else "it is empty or too large"
            if isinstance(checkpoint, str):
                yield Problem(item.file, None, f"checkpoint {name} of thread {thread} was not read: {checkpoint}")
                continue
            for message in _messages(checkpoint):
                message_id = get_text(message, "id") or to_json(message)
                if message_id not in seen:
                    seen.add(message_id)
                    yield from _message_events(message, f"{own}:{message_id}", checkpoint.get("ts"))


def _checkpoint(kind: Any, blob: Any) -> dict[str, Any] | str:
    """Return a checkpoint, or why it was not read; pickles and encrypted ones are not."""
    try:
        if kind == "msgpack" and isinstance(blob, bytes):
            value = read_msgpack(blob)
        elif kind == "json":
            value = _plain(json.loads(blob))
        else:
            return f"the format {kind} is not supported"
    except (ValueError, TypeError, RecursionError) as error:
        return str(error)[:200]
    return value if isinstance(value, dict) else "it is not an object"


def _plain(value: Any) -> Any:
    """Return a value of the older JSON format with the fields of objects in place of their constructors."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        if value.get("type") == "constructor" and "lc" in value:
            return _plain(value.get("kwargs"))
        return {name: _plain(field) for name, field in value.items()}
    return value


def _messages(checkpoint: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of all channels; usually the channel is called `messages`."""
    channels = checkpoint.get("channel_values")
    for name, value in channels.items() if isinstance(channels, dict) else ():
        if not str(name).startswith("__"):
            yield from (entry for entry in dicts_in(value) if entry.get("type") in _TYPES and "content" in entry)


def _message_events(message: dict[str, Any], name: str, at: Any) -> Iterator[ReadEvent]:
    kind, text = message.get("type"), content_text(message.get("content"))
    role = _ROLES.get(str(kind)) or ("user" if message.get("role") == "user" else "assistant")
    if kind in ("system", "remove"):
        yield Skipped("system prompt" if kind == "system" else "removal of a message")
    elif role == "tool":
        call = (str(message.get("tool_call_id") or name), str(message.get("name") or ""))
        yield tool_result_message(call, text, name, at)
    else:
        calls = [_tool_call(call) for call in dicts_in(message.get("tool_calls"))]
        if text or calls:
            yield text_message(role, text, name, at, tool_calls=calls or None)
        else:
            yield Skipped("message without text")


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": str(call.get("name")), "arguments": to_json(call.get("args") or {})}
    return {"id": as_text(call.get("id")), "type": "function", "function": function}


def _read_items(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    current = None
    query = "SELECT prefix, key, value, created_at, updated_at FROM store ORDER BY prefix, created_at, key"
    for prefix, key, stored, created, updated in rows(connection, query):
        if prefix != current:
            current = prefix
            yield notes_of(_PROGRAM, str(prefix), f"LangGraph: {prefix}")
        try:
            value = json.loads(stored)
        except (ValueError, TypeError, RecursionError):
            yield Problem(item.file, None, f"item {key} of {prefix} is not JSON")
            continue
        text = value_text(value)
        fields = None if isinstance(value, dict) and text in value.values() else value
        yield note(str(prefix), str(key), text, updated or created, {"created_at": created, "value": fields})
