"""Reads the threads of Jan: a directory for each, with `thread.json` and `messages.jsonl`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    call_parts,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    part_events,
    text_parts,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_files import (
    find_items,
    is_recently_changed,
    item_beside,
    read_json_file,
    read_json_lines,
    reread_time,
)

_MESSAGES = "messages.jsonl"


class Jan:
    name = "jan"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        home = Path.home()
        bases = (
            home / ".local" / "share" / "Jan" / "data",
            home / ".config" / "Jan" / "data",
            home / "Library" / "Application Support" / "Jan" / "data",
            home / "AppData" / "Roaming" / "Jan" / "data",
            home / "jan",
        )
        own = [base / "threads" for base in bases]
        found = find_items(path, own, lambda file: file.name == _MESSAGES, "thread")
        return [replace(item, modified_at=reread_time(item.modified_at)) for item in found]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        described = item_beside(item.file, item.file.with_name("thread.json"), "thread")
        thread = read_json_file(described) if described else {}
        if isinstance(thread, Problem):
            yield thread
        assistants = dicts_in(get_field(thread, "assistants"))
        models = [get_text(thread, "model", "id"), *(get_text(entry, "model", "id") for entry in assistants)]
        name = get_text(thread, "id") or item.file.parent.name
        yield ImportedConversation(
            name,
            get_text(thread, "title"),
            next((model for model in models if model), None),
            started_at=parse_timestamp(get_field(thread, "created")),
        )
        is_open = is_recently_changed(item.modified_at)
        for line in read_json_lines(item):
            if isinstance(line, Problem):
                yield line
            elif is_open and line.value.get("status") == "pending":
                # The record keeps the first version of a message; one that may still grow waits for the next import.
                yield Skipped("answer that may still be written")
            else:
                yield from _message_events(line.value, f"{name}:{line.value.get('id') or line.number}")


def _message_events(message: dict[str, Any], name: str) -> Iterator[ReadEvent]:
    parts: list[dict[str, Any]] = []
    # Versions of 2025 have the calls beside the content, later ones in it.
    for call in dicts_in(get_field(message, "metadata", "tool_calls")):
        function = get_field(call, "tool", "function")
        given = (str(get_field(call, "tool", "id")), get_text(function, "name") or "unknown")
        parts += call_parts((*given, get_field(function, "arguments")), _result(call.get("response")))
    for part in dicts_in(message.get("content")):
        text = get_text(part, "text", "value") or get_text(part, "text")
        if part.get("type") == "tool_call":
            given = (str(part.get("tool_call_id")), get_text(part, "tool_name") or "unknown")
            parts += call_parts((*given, part.get("input")), _result(part.get("output")))
        elif part.get("type") == "reasoning":
            parts.append({"type": "thinking", "thinking": text})
        else:
            parts += text_parts(text) if text else [part]
    yield from part_events(get_text(message, "role") or "assistant", parts, name, message.get("created_at"))


def _result(response: Any) -> Any:
    """Return the result of a tool: the parts that it answered with, or its error."""
    return get_field(response, "content") or get_text(response, "error") or response
