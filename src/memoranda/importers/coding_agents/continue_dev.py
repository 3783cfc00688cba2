"""Reads the sessions of Continue (editor extensions and command line) from `~/.continue/sessions`.

Messages have no times, so all of a session have the one at which it was created, which is in `sessions.json`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import chat_events, dicts_in, get_text, parse_timestamp, short_digest, to_json
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent
from memoranda.importers.source_files import find_items, item_beside, load_json, path_of_url, read_json_file

_LIST = "sessions.json"
_UNTITLED = frozenset({"Untitled Session", "New Session"})


class Continue:
    name = "continue"

    def __init__(self) -> None:
        self._lists: dict[Path, dict[str, Any]] = {}

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        self._lists.clear()
        path = Path.home() / ".continue" if path is None else path
        path = path / "sessions" if (path / "sessions").is_dir() else path
        return find_items(path, (), lambda file: file.suffix == ".json" and file.name != _LIST, "session")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        value = load_json(item)
        if not isinstance(value, dict) or not isinstance(value.get("history"), list):
            raise ReadError(Problem(item.file, None, "not a session of Continue: a history is expected"))
        session = get_text(value, "sessionId") or item.file.stem
        started_at = self._created_at(item, session) or item.modified_at
        title, directory = get_text(value, "title"), get_text(value, "workspaceDirectory") or ""
        yield ImportedConversation(
            session,
            None if title in _UNTITLED else title,
            get_text(value, "chatModelTitle"),
            path_of_url(directory) or directory or None,
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
