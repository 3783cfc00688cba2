"""Reads the sessions of Goose from its `sessions.db`, or from the `.jsonl` files of versions before 1.10.

Goose puts its older files into the database when it starts for the first time, so they are read only where there is no
database.
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
    to_json,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_databases import find_databases, read_database, rows, tables
from memoranda.importers.source_files import find_files, item_at, read_json_lines
from memoranda.support.json_object import parse_list, parse_object

_MESSAGES = (
    "SELECT id, message_id, role, content_json, created_timestamp, {metadata} FROM messages"
    " WHERE session_id = ? ORDER BY created_timestamp, id"
)
_UNSEEN = "text that only the model saw"


class Goose:
    name = "goose"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        if path is not None and item_at(path, "session"):
            return find_databases(path, (), "sessions")
        directories = [path] if path is not None else _own_directories()
        found = [item for directory in directories for item in find_databases(directory, ["messages"], "sessions")]
        own = [item for item in found if item.file.name == "sessions.db"]
        return own or [
            item
            for directory in directories
            for item in find_files(directory, lambda file: file.suffix == ".jsonl", "session")
        ]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.file.suffix == ".jsonl":
            return _read_file(item)
        required = {"messages": ("session_id", "role", "content_json", "created_timestamp")}
        return read_database(item, "Goose", required, partial(_sessions, item))

    def resume_command(self, host_id: str, directory: str | None) -> str:
        return f"goose session --resume --session-id {host_id}"


def _own_directories() -> list[Path]:
    home = Path.home()
    return [
        home / ".local" / "share" / "goose" / "sessions",
        home / "AppData" / "Roaming" / "Block" / "goose" / "data" / "sessions",
    ]


def _sessions(item: ImportItem, connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    columns = tables(connection)
    wanted = ("id", "name", "description", "working_dir", "model_config_json", "parent_session_id")
    # Older databases have fewer columns.
    selected = ", ".join(name if name in columns.get("sessions", ()) else "NULL" for name in wanted)
    metadata = "metadata_json" if "metadata_json" in columns["messages"] else "NULL"
    for row in rows(connection, f"SELECT {selected} FROM sessions ORDER BY created_at, id"):
        session, name, description, directory, model, parent = row
        yield ImportedConversation(
            str(session),
            name or description or None,
            get_text(parse_object(model or "{}"), "model_name"),
            directory,
            parent_host_id=parent,
            relation="delegation" if parent else None,
        )
        for number, message_id, role, content, at, facts in rows(
            connection, _MESSAGES.format(metadata=metadata), (session,)
        ):
            parts = parse_list(content)
            if parts is None:
                yield Problem(item.file, None, f"message {number} of session {session} is not a list of parts")
            elif get_field(parse_object(facts or "{}"), "userVisible") is False:
                yield Skipped(_UNSEEN)
            else:
                # A model's answer may be several messages with one id.
                own = f"{session}:{message_id or at}:{short_digest(content)[:12]}"
                yield from part_events(str(role), [p for part in parts for p in _parts(part)], own, at)


def _read_file(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield the session of a file: its first line describes it, the others are messages."""
    session = item.file.stem
    yield ImportedConversation(session)
    for line in read_json_lines(item):
        if isinstance(line, Problem):
            yield line
            continue
        value = line.value
        if "role" not in value:
            yield ImportedConversation(
                session, get_text(value, "description"), directory=get_text(value, "working_dir")
            )
            continue
        content = value.get("content")
        own = f"{session}:{value.get('id') or value.get('created')}:{short_digest(to_json(content))[:12]}"
        parts = [part for given in dicts_in(content) for part in _parts(given)]
        yield from part_events(str(value["role"]), parts, own, parse_timestamp(value.get("created")))


def _parts(part: Any) -> list[dict[str, Any]]:
    """Return a part of a message of Goose as parts of a chat API."""
    kind = get_text(part, "type")
    if kind in ("toolRequest", "frontendToolRequest"):
        call = get_field(part, "toolCall", "value")
        tool = get_text(call, "name") or "unknown"
        arguments = get_field(call, "arguments") if call else get_field(part, "toolCall")
        return call_parts((str(part.get("id")), tool, arguments), None)
    if kind == "toolResponse":
        result = get_field(part, "toolResult", "value")
        content = result.get("content") if isinstance(result, dict) else result
        content = content or get_text(part, "toolResult", "error") or ""
        return [{"type": "tool_result", "tool_use_id": str(part.get("id")), "content": content}]
    if kind in ("systemNotification", "toolConfirmationRequest", "actionRequired", "redactedThinking"):
        return []
    return [part] if isinstance(part, dict) else []
