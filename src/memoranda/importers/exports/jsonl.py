"""Reads JSON lines in one plain format, for programs without their own reader.

A line is a message: `role` and `content`, and where they are known `session` (else the file's name), `id`, `timestamp`
(ISO 8601, or seconds or milliseconds since 1970), `tool_calls`, `tool_call_id`, `tool_name`, `reasoning`; other fields
are kept. A line without `role` describes a session: `session`, `title`, `model`, `directory`, `started_at`,
`parent`, `relation`. A message line may have `title`, `model` and `directory` too.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, Problem, ReadEvent
from memoranda.importers.source_files import Line, find_items, read_json_lines, read_line_events

_SESSION_FIELDS = ("session", "title", "model", "directory", "started_at", "parent", "relation")
_RELATIONS = ("branch", "delegation", "compression")
_SUFFIXES = (".jsonl", ".ndjson")


class JsonLines:
    name = "jsonl"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the file at `path`, or the files under that directory; there is no default directory."""
        return find_items(path, (), lambda file: file.suffix in _SUFFIXES, "messages")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the messages of a file, line by line."""
        current: ImportedConversation | None = None

        def line_events(line: Line) -> Iterator[ReadEvent]:
            nonlocal current
            parsed = _parse_line(item.file, line)
            if isinstance(parsed, Problem):
                yield parsed
                return
            conversation, message = parsed
            if conversation != current:
                current = conversation
                yield conversation
            if message is not None:
                yield message

        return read_line_events(read_json_lines(item), line_events)


def _parse_line(file: Path, line: Line) -> tuple[ImportedConversation, ImportedMessage | None] | Problem:
    value = line.value
    host_id = value.get("session") or file.stem
    texts = {name: value.get(name) for name in ("session", "title", "model", "directory", "parent", "relation")}
    not_text = [name for name, text in texts.items() if text is not None and not isinstance(text, str)]
    if not_text:
        return Problem(file, line.number, f"{', '.join(not_text)} must be text")
    if texts["relation"] not in (None, *_RELATIONS):
        return Problem(file, line.number, f"relation must be one of {', '.join(_RELATIONS)}")
    conversation = ImportedConversation(
        host_id, texts["title"], texts["model"], texts["directory"], parse_timestamp(value.get("started_at")),
        texts["parent"], texts["relation"] or ("branch" if texts["parent"] else None),
    )  # fmt: skip
    role = value.get("role")
    if role is None and any(name in value for name in _SESSION_FIELDS) and "content" not in value:
        return conversation, None
    if not isinstance(role, str) or not role:
        return Problem(file, line.number, "a message needs a role, such as user or assistant")
    return conversation, ImportedMessage(_message(line, value, host_id), line.number)


def _message(line: Line, value: dict[str, Any], host_id: str) -> dict[str, Any]:
    kept = {name: field for name, field in value.items() if name not in (*_SESSION_FIELDS, "id")}
    name = value.get("id", value.get("external_id"))
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        name = f"{line.number}-{hashlib.sha256(line.raw.strip()).hexdigest()[:16]}"
    # Ids are unique only within a session.
    return kept | {"external_id": f"{host_id}:{name}"}
