"""Reads the sessions of Continue (editor extensions and command line) from `~/.continue/sessions`.

Messages have no times, so all of a session have the one at which it was created, which is in `sessions.json`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from memoranda.importers.chat_messages import chat_events, dicts_in, get_text, parse_timestamp, short_digest, to_json
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent
from memoranda.importers.source_files import find_files, item_at, item_beside, read_json_file

_LIST = "sessions.json"
_UNTITLED = frozenset({"Untitled Session", "New Session"})


class Continue:
    """The reader of Continue's sessions."""

    name = "continue"

    def __init__(self) -> None:
        self._lists: dict[Path, dict[str, Any]] = {}

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the sessions under a path, or in Continue's own directory."""
        self._lists.clear()
        path = Path.home() / ".continue" if path is None else path
        if single := item_at(path, "session"):
            return [single]
        path = path / "sessions" if (path / "sessions").is_dir() else path
        return find_files(path, lambda file: file.suffix == ".json" and file.name != _LIST, "session")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield one session and its messages."""
        value = read_json_file(item)
        if isinstance(value, Problem):
            yield value
            return
        if not isinstance(value, dict) or not isinstance(value.get("history"), list):
            yield Problem(item.file, None, "not a session of Continue: a history is expected")
            return
        session = get_text(value, "sessionId") or item.file.stem
        started_at = self._created_at(item, session) or item.modified_at
        title = get_text(value, "title")
        yield ImportedConversation(
            session,
            None if title in _UNTITLED else title,
            get_text(value, "chatModelTitle"),
            _path_of(get_text(value, "workspaceDirectory")),
            started_at,
        )
        for number, entry in enumerate(dicts_in(value["history"])):
            message = entry.get("message")
            if not isinstance(message, dict):
                yield Problem(item.file, None, f"entry {number} of the history has no message")
                continue
            if "toolCallId" in message:
                message = {**message, "tool_call_id": message["toolCallId"]}
            known_by = short_digest(to_json([message.get("role"), message.get("content")]))[:12]
            yield from chat_events(message, f"{session}:{number}:{known_by}", started_at)

    def _created_at(self, item: ImportItem, session: str) -> float | None:
        file = item.file.with_name(_LIST)
        if file not in self._lists:
            found = item_beside(item.file, file, "list")
            listed = dicts_in(read_json_file(found)) if found else []
            self._lists[file] = {str(entry.get("sessionId")): entry.get("dateCreated") for entry in listed}
        return parse_timestamp(self._lists[file].get(session))


def _path_of(directory: str | None) -> str | None:
    """Return a directory that may be written as an address."""
    if directory and directory.startswith("file://"):
        return unquote(urlsplit(directory).path)
    return directory
