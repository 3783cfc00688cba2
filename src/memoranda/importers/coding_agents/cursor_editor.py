"""Reads the conversations of Cursor's editor from the key-value tables of its databases (`state.vscdb`).

Cursor calls its messages bubbles. Today `cursorDiskKV` of the global database has `composerData:<id>`, which lists the
bubbles in order, and `bubbleId:<id>:<bubble>` for each of them. Before 2025 the bubbles were inside `composerData`, and
before that in the database of each workspace, under `composer.composerData` or, in the oldest versions, as tabs of a
chat panel.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from memoranda.importers import chat_messages
from memoranda.importers.chat_messages import (
    as_text,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    reasoning_message,
    short_digest,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_databases import database_at, open_database, rows, tables
from memoranda.importers.source_files import is_recently_changed, item_beside, path_of_url, read_json_file, reread_time
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_dataclass import dataclass

Bubble = dict[str, Any]
_ROLES = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}
_UNFINISHED = ("loading", "running", "pending", "generating")
COMPOSER = "composer "
TAB = "tab "
_UNREADABLE = "database"
_IN_WORKSPACE = "composer.composerData"
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
_GLOBAL = "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'"


@dataclass(frozen=True, slots=True)
class ListedConversation:
    """A conversation in a database: the label of its item, its size, and when it was last changed."""

    label: str
    size: int
    modified_at: float | None


@dataclass(slots=True)
class EditorDatabases:
    """Finds the conversations of an editor; does not measure unchanged databases and conversations again."""

    directories: dict[str, str] = field(default_factory=dict)
    _known: dict[Path, tuple[ImportItem, list[ListedConversation]]] = field(default_factory=dict)
    _sizes: dict[str, tuple[float | None, int]] = field(default_factory=dict)

    def conversations(self, file: Path) -> list[ImportItem]:
        """Return an item for each; an unreadable database is one item, so that reading it reports the problem."""
        item = database_at(file, _UNREADABLE)
        if item is None:
            return []
        known = self._known.get(file)
        if known is None or known[0] != item:
            try:
                with open_database(file) as connection:
                    found = list(self._list(connection, workspace_directory(file.parent)))
            except OSError:
                return [item]
            known = self._known[file] = (item, found)
        times = [
            (conversation, item.modified_at if conversation.modified_at is None else conversation.modified_at)
            for conversation in known[1]
        ]
        return [
            ImportItem(file, conversation.size, reread_time(at), conversation.label)
            for conversation, at in sorted(times, key=lambda p: p[1])
        ]

    def _list(self, connection: sqlite3.Connection, folder: str | None) -> Iterator[ListedConversation]:
        found_tables = tables(connection)
        if not {"cursorDiskKV", "ItemTable"} & found_tables.keys():
            raise OSError("not a database of Cursor: it has none of Cursor's tables")
        if "cursorDiskKV" in found_tables:
            for key, value in rows(connection, _GLOBAL):
                data, name = parse_object(value), key.removeprefix("composerData:")
                if data is not None and not _is_empty(data):
                    listed = _list_conversation(f"{COMPOSER}{name}", value, data)
                    yield replace(listed, size=listed.size + self._size(connection, name, listed.modified_at))
                elif data is None and value is not None:
                    yield ListedConversation(f"{COMPOSER}{name}", len(value), None)
        if "ItemTable" not in found_tables:
            return
        for data in dicts_in(chat_messages.get_field(_read_value(connection, _IN_WORKSPACE), "allComposers")):
            host_id = get_text(data, "composerId")
            if host_id and folder:
                self.directories[host_id] = folder
            if host_id and data.get("conversation"):
                yield _list_conversation(f"{COMPOSER}{host_id}", json.dumps(data), data)
        for data in dicts_in(chat_messages.get_field(_read_value(connection, _TABS), "tabs")):
            if (host_id := get_text(data, "tabId")) and data.get("bubbles"):
                yield _list_conversation(f"{TAB}{host_id}", json.dumps(data), data)

    def _size(self, connection: sqlite3.Connection, host_id: str, modified_at: float | None) -> int:
        """Return the size of the bubbles that have their own keys."""
        known = self._sizes.get(host_id)
        if known is None or known[0] != modified_at:
            query = "SELECT coalesce(sum(length(value)), 0) FROM cursorDiskKV WHERE key >= ? AND key < ?"
            size = connection.execute(query, (f"bubbleId:{host_id}:", f"bubbleId:{host_id};")).fetchone()[0]
            known = self._sizes[host_id] = (modified_at, int(size))
        return known[1]


def bubble_events(bubble: Bubble, name: str, at: Any, *, ended: bool) -> Iterator[ReadEvent]:
    """Yield the content of a bubble; one that Cursor is still writing (not `ended`) is left for the next import."""
    role = _ROLES.get(bubble.get("type") if isinstance(bubble.get("type"), int | str) else "")
    timestamp = _timestamp(bubble) or at
    if role is None:
        yield Skipped(f"bubble ({str(bubble.get('type'))[:40]})")
        return
    if not ended:
        yield Skipped("still being written")
        return
    messages: list[ImportedMessage] = []
    if reasoning := get_text(bubble, "thinking", "text") or get_text(bubble, "thinking"):
        messages.append(reasoning_message(reasoning, f"{name}:thought", timestamp))
    text = get_text(bubble, "text") or get_text(bubble, "rawText")
    if text is None and role == "assistant":
        blocks = [get_text(block, "content") for block in dicts_in(bubble.get("codeBlocks"))]
        text = "\n\n".join(f"```\n{block}\n```" for block in blocks if block) or None
    if text:
        messages.append(text_message(role, text, name, timestamp))
    if isinstance(bubble.get("toolFormerData"), dict):
        messages += _tool_messages(bubble["toolFormerData"], name, timestamp)
    yield from messages
    if not messages:
        yield Skipped("bubble without text")


def is_ended(bubble: Bubble) -> bool:
    """Whether Cursor will add nothing more to a bubble."""
    return get_field(bubble, "toolFormerData", "status") not in _UNFINISHED


def model_of(bubble: Bubble) -> str | None:
    """Return the model that answered, if the bubble names it."""
    return get_text(bubble, "modelInfo", "modelName") or get_text(bubble, "modelType")


def _tool_messages(data: Bubble, name: str, at: Any) -> list[ImportedMessage]:
    """Convert a tool call, with its result if there is one."""
    if not any(data.get(field) for field in ("name", "tool", "rawArgs", "params", "result")):
        return []
    tool = get_text(data, "name") or as_text(data.get("tool"))
    arguments = data.get("rawArgs") or data.get("params") or {}
    call_id = get_text(data, "toolCallId") or short_digest(name)
    messages = [tool_call_message((call_id, tool, arguments), f"{name}:call", at)]
    if result := as_text(data.get("result") or data.get("error")):
        messages.append(tool_result_message((call_id, tool), result, f"{name}:result", at))
    return messages


def _timestamp(bubble: Bubble) -> Any:
    for path in (("createdAt",), ("timingInfo", "clientStartTime"), ("timingInfo", "startedAt")):
        if found := get_field(bubble, *path):
            return found
    return None


def read_conversation(item: ImportItem, directories: dict[str, str]) -> Iterator[ReadEvent]:
    with open_database(item.file) as connection:
        if item.label.startswith(TAB):
            yield from _tab_events(item, connection)
        elif item.label.startswith(COMPOSER):
            yield from _composer_events(item, connection, directories)
        else:
            yield Problem(item.file, None, "not a database of Cursor that can be read")


def _composer_events(
    item: ImportItem, connection: sqlite3.Connection, directories: dict[str, str]
) -> Iterator[ReadEvent]:
    host_id = item.label.removeprefix(COMPOSER)
    data = _read_composer_data(connection, host_id)
    if data is None:
        yield Problem(item.file, None, f"conversation {host_id} is not a JSON object, or no longer exists")
        return
    model = get_text(data, "modelConfig", "modelName")
    conversation = ImportedConversation(
        f"composer-{host_id}",
        get_text(data, "name"),
        None if model == "default" else model,
        directories.get(host_id) or workspace_directory(item.file.parent),
        parse_timestamp(data.get("createdAt")),
        same_as=host_id,
        extra={name: found for name in ("unifiedMode", "createdOnBranch") if (found := get_text(data, name))},
    )
    yield conversation
    writing = _unfinished_bubbles(data) if is_recently_changed(item.modified_at) else None
    seen_names = set()
    for name, bubble in _read_bubbles(connection, host_id, data):
        seen_names.add(name)
        if bubble is None:
            yield Problem(item.file, None, f"bubble {name} of conversation {host_id} is missing or not a JSON object")
            continue
        if conversation.model is None and (model := model_of(bubble)) and model != "default":
            conversation = ImportedConversation(conversation.host_id, model=model)
            yield conversation
        unfinished = writing is not None and (name in writing or not is_ended(bubble))
        yield from bubble_events(bubble, name, None, ended=not unfinished)
    for _ in range(_count_unlisted(connection, host_id, seen_names)):
        yield Skipped("bubble that was rewound")


def _tab_events(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    host_id = item.label.removeprefix(TAB)
    tabs = dicts_in(chat_messages.get_field(_read_value(connection, _TABS), "tabs"))
    data = next((tab for tab in tabs if tab.get("tabId") == host_id), None)
    if data is None:
        yield Problem(item.file, None, f"chat {host_id} no longer exists")
        return
    bubbles = dicts_in(data.get("bubbles"))
    model = next((found for bubble in bubbles if (found := model_of(bubble))), None)
    yield ImportedConversation(
        f"chat-{host_id}", get_text(data, "chatTitle"), model, workspace_directory(item.file.parent)
    )
    for number, bubble in enumerate(bubbles):
        # Only the last message has a time; the others are as old as that, or older.
        name = get_text(bubble, "id") or str(number)
        yield from bubble_events(bubble, f"{host_id}:{name}", data.get("lastSendTime"), ended=True)


def _read_composer_data(connection: sqlite3.Connection, host_id: str) -> dict[str, Any] | None:
    """Return the description of a conversation, from the table that has it."""
    found_tables = tables(connection)
    if "cursorDiskKV" in found_tables:
        row = connection.execute(
            "SELECT value FROM cursorDiskKV WHERE key = ?", (f"composerData:{host_id}",)
        ).fetchone()
        if row is not None:
            return parse_object(row[0])
    if "ItemTable" not in found_tables:
        return None
    listed = dicts_in(chat_messages.get_field(_read_value(connection, _IN_WORKSPACE), "allComposers"))
    return next((data for data in listed if data.get("composerId") == host_id), None)


def _read_bubbles(
    connection: sqlite3.Connection, host_id: str, data: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the bubbles of a conversation in order; None for one that cannot be read."""
    inside = data.get("conversation")
    if isinstance(inside, list) and inside:
        for number, bubble in enumerate(inside):
            name = get_text(bubble, "bubbleId") or f"{host_id}:{number}"
            yield name, bubble if isinstance(bubble, dict) else None
        return
    mapped = data.get("conversationMap")
    for header in dicts_in(data.get("fullConversationHeadersOnly")):
        name = get_text(header, "bubbleId") or ""
        key = f"bubbleId:{host_id}:{name}"
        row = connection.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
        bubble = parse_object(row[0]) if row else chat_messages.get_field(mapped, name)
        yield name, bubble if isinstance(bubble, dict) else None


def _unfinished_bubbles(data: dict[str, Any]) -> set[str]:
    """Return the bubbles that Cursor may still be writing."""
    listed = data.get("generatingBubbleIds")
    names = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    last = dicts_in(data.get("fullConversationHeadersOnly"))[-1:]
    return names | {str(bubble.get("bubbleId")) for bubble in last if data.get("status") == "generating"}


def _count_unlisted(connection: sqlite3.Connection, host_id: str, listed: set[str]) -> int:
    """Count the stored bubbles that the conversation no longer lists."""
    if "cursorDiskKV" not in tables(connection):
        return 0
    prefix = f"bubbleId:{host_id}:"
    keys = rows(connection, "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ?", (prefix, f"{prefix[:-1]};"))
    return sum(key.removeprefix(prefix) not in listed for (key,) in keys)


def _list_conversation(label: str, value: Any, data: dict[str, Any]) -> ListedConversation:
    size = len(value) if isinstance(value, str | bytes) else 0
    latest = [parse_timestamp(data.get(name)) for name in ("lastUpdatedAt", "lastSendTime", "createdAt")]
    return ListedConversation(label, size, next((at for at in latest if at is not None), None))


def _is_empty(data: dict[str, Any]) -> bool:
    """Whether a conversation has no messages."""
    return not any(data.get(name) for name in ("conversation", "fullConversationHeadersOnly", "conversationMap"))


def _read_value(connection: sqlite3.Connection, key: str) -> Any:
    row = connection.execute("SELECT value FROM ItemTable WHERE key = ?", (key,)).fetchone()
    return parse_object(row[0]) if row else None


def workspace_directory(workspace: Path) -> str | None:
    """Return the directory of a workspace from its `workspace.json`, if it is on this machine."""
    item = item_beside(workspace / "state.vscdb", workspace / "workspace.json", "workspace")
    url = get_text(read_json_file(item), "folder") if item else None
    return path_of_url(url) if url else None
