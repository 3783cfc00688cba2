"""Reads tasks of Cline and Roo Code: files of the VS Code extensions, and sessions of Cline's command line.

Both keep the messages of a task as Anthropic's API has them, and rewrite the file with each message.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    chat_events,
    content_text,
    dicts_in,
    get_text,
    parse_timestamp,
    short_digest,
    text_message,
    to_json,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent
from memoranda.importers.source_files import find_items, item_beside, load_json, read_json_file, storage_directories

_TASK_FILE, _SESSION_SUFFIX = "api_conversation_history.json", ".messages.json"
# What Cline writes around the words of the user, and after them.
_WRAPPER = re.compile(
    r"\A\s*<(task|user_message|feedback|answer|user_input)(?: [^<>]{0,100})?>\s*(.*?)\s*</\1>\s*\Z", re.DOTALL
)
_ENVIRONMENT = "<environment_details>"


class Cline:
    name = "cline"
    _extension = "saoudrizwan.claude-dev"
    _command_line: str | None = ".cline"

    def __init__(self, settings: Path | None = None) -> None:
        self._settings = settings

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the tasks under a path, or where the extension and the command line keep them."""
        directories = [storage / "globalStorage" / self._extension for storage in storage_directories(self._settings)]
        if self._command_line:
            directories.append(Path.home() / self._command_line / "data")
        return find_items(path, directories, _is_task, "task")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        value = load_json(item)
        messages = value.get("messages") if isinstance(value, dict) else value
        if not isinstance(messages, list) or not any("role" in message for message in dicts_in(messages)):
            raise ReadError(Problem(item.file, None, "not a task of Cline or Roo Code: a list of messages is expected"))
        task, about = _describe(item)
        yield about
        for number, message in enumerate(dicts_in(messages)):
            text, added = _split_text(message.get("content"), is_user=message.get("role") == "user")
            name = get_text(message, "id") or f"{number}:{short_digest(to_json(message.get('content')))[:12]}"
            name, at = f"{task}:{name}", message.get("ts")
            if text or not added:
                yield from chat_events(message, name, at, text)
            if added:
                yield text_message("system", added, f"{name}:added" if text else name, at)


class Roo(Cline):
    name = "roo"
    _extension = "rooveterinaryinc.roo-cline"
    _command_line = None


def _is_task(file: Path) -> bool:
    return file.name == _TASK_FILE or file.name.endswith(_SESSION_SUFFIX)


def _describe(item: ImportItem) -> tuple[str, ImportedConversation]:
    """Return the id of a task, and what the file beside it says about it."""
    if not item.file.name.endswith(_SESSION_SUFFIX):
        # The directory is called after the time at which the task started.
        task = item.file.parent.name
        return task, ImportedConversation(task, started_at=parse_timestamp(int(task)) if task.isdecimal() else None)
    task = item.file.name.removesuffix(_SESSION_SUFFIX)
    beside = item_beside(item.file, item.file.with_name(f"{task}.json"), "session")
    value: Any = read_json_file(beside) if beside else None
    about = value if isinstance(value, dict) else {}
    return task, ImportedConversation(
        task,
        get_text(about, "metadata", "title"),
        get_text(about, "model"),
        get_text(about, "cwd"),
        parse_timestamp(about.get("started_at")),
    )


def _split_text(content: Any, *, is_user: bool) -> tuple[str, str]:
    """Return the text of a message, and what Cline wrote in the user's role; its description of the editor is dropped.

    The words of the user are inside an element; results of tools and notices are not.
    """
    parts = content if isinstance(content, list) else [content]
    texts = [text for text in (content_text([part]) for part in parts) if not text.lstrip().startswith(_ENVIRONMENT)]
    own = [_WRAPPER.sub(r"\2", text) for text in texts if text and (not is_user or _WRAPPER.match(text))]
    added = [text for text in texts if text and is_user and not _WRAPPER.match(text)]
    return "\n".join(own), "\n".join(added)
