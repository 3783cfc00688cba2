"""Reads JSON lines in one plain format, for everything that has no reader of its own.

A line is a message: `role` and `content`, and where they are known `session` (else the file's name), `id`, `timestamp`
(ISO 8601, or seconds or milliseconds since 1970), `tool_calls`, `tool_call_id`, `tool_name`, `reasoning`; other fields
are kept. A line without `role` says something of a session: `session`, `title`, `model`, `directory`, `started_at`,
`parent`, `relation`. A message line may say `title`, `model` and `directory` too.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, Problem, ReadEvent
from memoranda.importers.source_files import Line, files_under, item_at, json_lines, read_lines

_OF_SESSIONS = ("session", "title", "model", "directory", "started_at", "parent", "relation")
_RELATIONS = ("branch", "delegation", "compression")
_ENDINGS = (".jsonl", ".ndjson")


class JsonLines:
    """The reader of the plain format."""

    name = "jsonl"

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        """The file that is named, or those below the directory; there is no place where such files lie."""
        if where is None:
            return []
        single = item_at(where, "messages")
        return [single] if single else files_under(where, lambda file: file.suffix in _ENDINGS, "messages")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """The messages of a file, line by line."""
        said: ImportedConversation | None = None

        def given(line: Line) -> Iterator[ReadEvent]:
            nonlocal said
            found = _given(item.file, line)
            if isinstance(found, Problem):
                yield found
                return
            conversation, message = found
            if conversation != said:
                said = conversation
                yield conversation
            if message is not None:
                yield message

        return read_lines(json_lines(item), given)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Nothing: the lines may come from anywhere."""
        return ""


def _given(file: Path, line: Line) -> tuple[ImportedConversation, ImportedMessage | None] | Problem:
    value = line.value
    host_id = value.get("session") or file.stem
    texts = {name: value.get(name) for name in ("session", "title", "model", "directory", "parent", "relation")}
    wrong = [name for name, each in texts.items() if each is not None and not isinstance(each, str)]
    if wrong:
        return Problem(file, line.number, f"{', '.join(wrong)} must be text")
    if texts["relation"] not in (None, *_RELATIONS):
        return Problem(file, line.number, f"relation must be one of {', '.join(_RELATIONS)}")
    conversation = ImportedConversation(
        host_id, texts["title"], texts["model"], texts["directory"], parse_timestamp(value.get("started_at")),
        texts["parent"], texts["relation"] or ("branch" if texts["parent"] else None),
    )  # fmt: skip
    role = value.get("role")
    if role is None and any(name in value for name in _OF_SESSIONS) and "content" not in value:
        return conversation, None
    if not isinstance(role, str) or not role:
        return Problem(file, line.number, "a message needs a role, such as user or assistant")
    return conversation, ImportedMessage(_message(line, value, host_id), line.number)


def _message(line: Line, value: dict[str, Any], host_id: str) -> dict[str, Any]:
    kept = {name: each for name, each in value.items() if name not in (*_OF_SESSIONS, "id")}
    name = value.get("id", value.get("external_id"))
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        name = f"{line.number}-{hashlib.sha256(line.raw.strip()).hexdigest()[:16]}"
    # An id tells messages of one session apart; another session may have the same.
    return kept | {"external_id": f"{host_id}:{name}"}
