"""Reads the chats of Open WebUI from its `webui.db`, or from the JSON file that its settings export.

A chat is a tree of messages. Versions before 0.7 write reasoning and calls of tools into the text of an answer, as
HTML; later ones beside it, as items of the Responses API.
"""

import html
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import call_parts, dicts_in, get_field, get_text, parse_timestamp, text_parts
from memoranda.importers.exports.archives import open_list, read_elements
from memoranda.importers.exports.conversation_tree import ChatTree, TreeMessage
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_databases import find_databases, read_database, rows
from memoranda.importers.source_files import find_files, is_recently_changed, item_at
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_pattern import compile_later

_COLUMNS = ("id", "title", "chat", "created_at", "updated_at")
_DATABASE, _EXPORT = "database", "export"
_DETAILS = compile_later(r'(?s)<details type="(\w+)"([^>]*)>(?:\s*<summary>.*?</summary>)?(.*?)</details>\s*')
_ATTRIBUTE = compile_later(r'(?s)(\w+)="(.*?)"')


class OpenWebUI:
    name = "open-webui"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        if path is not None and (single := item_at(path, _EXPORT)) and path.suffix == ".json":
            return [single]
        if path is not None:
            return [*find_databases(path, ["chat"], _DATABASE), *find_files(path, _is_export, _EXPORT)]
        downloads = find_files(Path.home() / "Downloads", _is_export, _EXPORT, max_depth=1)
        return [*find_databases(Path.home() / ".open-webui", ["chat"], _DATABASE), *downloads]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.label == _DATABASE:
            return read_database(item, "Open WebUI", {"chat": _COLUMNS}, partial(_stored_chats, item))
        return _exported_chats(item)


def _is_export(file: Path) -> bool:
    return file.suffix == ".json" and file.name.startswith("chat-export-")


def _stored_chats(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    for row in rows(connection, f"SELECT {', '.join(_COLUMNS)} FROM chat ORDER BY created_at, id"):
        chat = dict(zip(_COLUMNS, row, strict=True))
        yield from _chat_events(item, {**chat, "chat": parse_object(chat["chat"])})


def _exported_chats(item: ImportItem) -> Iterator[ReadEvent]:
    with open_list(item) as stream:
        for found in read_elements(stream, item.file):
            if isinstance(found, Problem):
                yield found
            elif isinstance(found.value, dict):
                yield from _chat_events(item, found.value)
            else:
                yield Problem(item.file, found.line, "not a chat of Open WebUI: an object is expected")


def _chat_events(item: ImportItem, value: dict[str, Any]) -> Iterator[ReadEvent]:
    name, messages = value.get("id"), get_field(value, "chat", "history", "messages")
    if not isinstance(name, str) or not isinstance(messages, dict):
        yield Problem(item.file, None, f"chat {name} has no messages that can be understood")
        return
    is_open = is_recently_changed(parse_timestamp(value.get("updated_at")) or 0.0)
    tree: dict[str, TreeMessage] = {}
    for message_id, message in messages.items():
        if not isinstance(message, dict):
            yield Problem(item.file, None, f"message {message_id} of chat {name} cannot be understood")
        elif is_open and message.get("done") is False:
            # The record keeps the first version of a message, so one that may still grow waits for the next import.
            yield Skipped("answer that may still be written")
        else:
            role = get_text(message, "role") or "assistant"
            tree[message_id] = TreeMessage(
                get_text(message, "parentId"), role, _parts(message), message.get("timestamp")
            )
    models = [model for message in dicts_in(list(messages.values())) if (model := get_text(message, "model"))]
    conversation = ImportedConversation(
        name,
        get_text(value, "title"),
        models[-1] if models else None,
        started_at=parse_timestamp(value.get("created_at")),
    )
    yield from ChatTree(item.file, conversation, tree, get_text(value, "chat", "history", "currentId")).events()


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    output = [part for item in dicts_in(message.get("output")) for part in _output_parts(item)]
    content = message.get("content")
    if output or not isinstance(content, str):
        return output or dicts_in(content)
    parts: list[dict[str, Any]] = []
    end = 0
    for found in _DETAILS.finditer(content):
        parts += [*text_parts(content[end : found.start()]), *_detail_parts(found[1], found[2], found[3])]
        end = found.end()
    parts += text_parts(content[end:])
    return [part for part in parts if part.get("text") != ""]


def _output_parts(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an item of the Responses API as parts of a message."""
    kind, call_id = item.get("type"), str(item.get("call_id"))
    if kind == "function_call":
        return call_parts((call_id, str(item.get("name")), item.get("arguments")), None)
    if kind == "function_call_output":
        return [{"type": "tool_result", "tool_use_id": call_id, "content": item.get("output")}]
    if kind == "reasoning":
        thoughts = [*dicts_in(item.get("summary")), *dicts_in(item.get("content"))]
        return [{"type": "thinking", "thinking": text} for part in thoughts if (text := get_text(part, "text"))]
    return dicts_in(item.get("content"))


def _detail_parts(kind: str, attributes: str, body: str) -> list[dict[str, Any]]:
    """Return a collapsed part of an answer: reasoning, or a call of a tool with its result."""
    values = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
    if kind == "tool_calls":
        call = (values.get("id") or "", values.get("name") or "", values.get("arguments") or "{}")
        return call_parts(call, values.get("result"))
    text = "\n".join(line.removeprefix("> ").removeprefix(">") for line in html.unescape(body).strip().splitlines())
    return [{"type": "thinking", "thinking": text}] if text.strip() else []
