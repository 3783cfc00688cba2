"""Reads the conversations that Letta Code keeps in files: its local backend, without a server.

    conversations/<name>/conversation.json   the ids of the conversation and of its agent, and a title
    conversations/<name>/messages.jsonl      a line per message, in the format of pi
    agents/<name>.json                       the agent, with its model

A message that changed is written again, at the end, with the same id; the last line with an id is the message. Ids of
messages are unique in a conversation only, and those of conversations in one directory.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import get_text, parse_timestamp
from memoranda.importers.pi_messages import convert_message
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_files import find_files, item_at, read_json_file, read_json_lines

STORAGE = "lc-local-backend"
"""The directory in `~/.letta`; LETTA_LOCAL_BACKEND_DIR moves it."""
FILE_NAME = "messages.jsonl"
_REMINDER = ("<system-reminder>", "</system-reminder>")


def find_transcripts(path: Path) -> list[ImportItem]:
    """Return the conversations under Letta's own directory, or under that of its local backend."""
    directories = [path / STORAGE / "conversations", path / "conversations"]
    return [item for each in directories for item in find_files(each, lambda file: file.name == FILE_NAME, "messages")]


def read_transcript(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield one conversation and its messages."""
    latest: dict[str, int] = {}
    for line in read_json_lines(item):
        if isinstance(line, Problem):
            yield line
        elif name := get_text(_message_of(line.value), "id"):
            latest[name] = line.number
    if latest:
        yield from _read_lines(item, latest)


def _read_lines(item: ImportItem, latest: dict[str, int]) -> Iterator[ReadEvent]:
    """Yield the messages, of each the last version, whose line number is in `latest`."""
    conversation: ImportedConversation | None = None
    for line in read_json_lines(item):
        if isinstance(line, Problem):
            continue
        conversation = conversation or _describe(item, line.value)
        message = _message_of(line.value)
        name = get_text(message, "id")
        if line.value.get("type") == "session":
            continue
        if name is None:
            yield Skipped(f"line without a message: {str(line.value.get('type'))[:40]}")
        elif latest.get(name) != line.number:
            yield Skipped("earlier version of a message")
        elif (converted := _convert(line.value, message)) is None:
            yield Skipped("message without text")
        else:
            yield conversation
            at = get_text(message, "metadata", "created_at") or line.value.get("timestamp") or message.get("timestamp")
            known_by = {"external_id": f"{conversation.host_id}:{name}", "timestamp": at}
            yield ImportedMessage({**converted, **known_by}, line.number)


def _message_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return the message in a line; in the first version, the line itself is the message."""
    message = value.get("message", value if "role" in value else {})
    return message if isinstance(message, dict) else {}


def _convert(value: dict[str, Any], message: dict[str, Any]) -> dict[str, Any] | None:
    if value.get("type") == "compaction" and (summary := get_text(value, "summary")):
        return {"role": "user", "content": summary, "is_summary": True}
    content = message.get("content")
    if message.get("role") == "user" and isinstance(content, list):
        message = {**message, "content": [part for part in content if not _is_reminder(part)]}
    return convert_message(message)


def _is_reminder(part: Any) -> bool:
    """Whether Letta Code wrote this part of the user's message, for example about the time and the directory."""
    text = (get_text(part, "text") or "").strip()
    return text.startswith(_REMINDER[0]) and text.endswith(_REMINDER[1]) and text.count(_REMINDER[0]) == 1


def _describe(item: ImportItem, first: dict[str, Any]) -> ImportedConversation:
    """Return the conversation by what the files beside its messages and the first line say."""
    about = _read(item.file.with_name("conversation.json"))
    name = get_text(about, "id") or get_text(first, "id") or item.file.parent.name
    agent_id = get_text(about, "agent_id") or ""
    encoded = urlsafe_b64encode(agent_id.encode()).decode().rstrip("=")
    agent = _read(item.file.parent.parent.parent / "agents" / f"{encoded}.json") if agent_id else {}
    return ImportedConversation(
        f"{agent_id}/{name}" if agent_id else name,
        get_text(about, "summary"),
        get_text(agent, "model"),
        get_text(first, "cwd"),
        parse_timestamp(about.get("created_at") or first.get("timestamp")),
    )


def _read(file: Path) -> dict[str, Any]:
    item = item_at(file, "")
    value = read_json_file(item) if item else None
    return value if isinstance(value, dict) else {}
