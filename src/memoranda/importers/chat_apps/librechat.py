"""Reads conversations of LibreChat from the JSON files that its menu "Export" writes.

One file is one conversation: its messages in a list or as a tree, depending on the options chosen for the export.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import call_parts, dicts_in, get_field, get_text, text_parts
from memoranda.importers.exports.conversation_tree import ChatTree, TreeMessage
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent
from memoranda.importers.source_files import find_files, find_items, load_json, open_source

_CHECKED_BYTES = 1000


class LibreChat:
    name = "librechat"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        if path is None:
            return find_files(Path.home() / "Downloads", _is_export, "export", max_depth=1)
        return find_items(path, (), _is_export, "export")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        value = load_json(item)
        name = get_text(value, "conversationId")
        messages = _flat(get_field(value, "messagesTree") or get_field(value, "messages"))
        if not name or not messages:
            problem = "not an export of LibreChat: a conversationId and messages are expected"
            raise ReadError(Problem(item.file, None, problem))
        tree = {
            str(message["messageId"]): TreeMessage(
                get_text(message, "parentMessageId"),
                "user" if message.get("isCreatedByUser") is True else "assistant",
                _parts(message),
                message.get("createdAt"),
            )
            for message in messages
        }
        models = [model for message in messages if (model := get_text(message, "model"))]
        model = models[-1] if models else get_text(value, "options", "model")
        conversation = ImportedConversation(name, get_text(value, "title"), model)
        # The export does not say which branch was shown; the latest message is the last one in it.
        latest = max(messages, key=lambda message: get_text(message, "createdAt") or "")
        yield from ChatTree(item.file, conversation, tree, str(latest["messageId"])).events()


def _is_export(file: Path) -> bool:
    """Whether a file begins as an export does; downloads have other JSON files, too."""
    if file.suffix != ".json":
        return False
    try:
        with open_source(file) as stream:
            start = stream.read(_CHECKED_BYTES)
    except OSError:
        return False
    return b'"conversationId"' in start and b'"exportAt"' in start


def _flat(messages: Any) -> list[dict[str, Any]]:
    """Return all messages of a list or tree that have an id, each after the one that it answers."""
    found: list[dict[str, Any]] = []
    waiting = dicts_in(messages)[::-1]
    while waiting:
        message = waiting.pop()
        if get_text(message, "messageId"):
            found.append(message)
        waiting += dicts_in(message.get("children"))[::-1]
    return found


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    text = get_text(message, "text")
    parts = [part for given in dicts_in(message.get("content")) for part in _content_parts(given)]
    return parts or (text_parts(text) if text else [])


def _content_parts(part: dict[str, Any]) -> list[dict[str, Any]]:
    kind = part.get("type")
    if kind == "text":
        return text_parts(get_text(part, "text") or get_text(part, "text", "value") or "")
    if kind == "think":
        return [{"type": "thinking", "thinking": get_text(part, "think") or get_text(part, "think", "value")}]
    if kind == "tool_call":
        call = part.get("tool_call")
        call_id, tool = str(get_field(call, "id")), get_text(call, "name") or get_text(call, "function", "name")
        arguments = get_field(call, "args") or get_field(call, "function", "arguments")
        result = get_field(call, "output") or get_field(call, "function", "output")
        return call_parts((call_id, tool or "unknown", arguments), result)
    if kind == "error":
        return [{"type": "text", "text": f"[{get_text(part, 'error') or get_text(part, 'text') or 'error'}]"}]
    return [part]
