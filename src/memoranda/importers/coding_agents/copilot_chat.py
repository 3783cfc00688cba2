"""Reads the chats of Copilot in Visual Studio Code, from `chatSessions` of each workspace.

Since 1.109 the editor writes a log of changes (`.jsonl`): the first line has the session, the others set, extend or
delete a part of it. Earlier versions wrote the session itself (`.json`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import dicts_in, get_text, parse_timestamp, text_message, tool_call_message
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent, Skipped
from memoranda.importers.source_files import (
    find_items,
    is_recently_changed,
    item_beside,
    load_json,
    path_of_url,
    read_json_file,
    read_json_lines,
    reread_time,
    storage_directories,
)

_FOLDERS = ("chatSessions", "emptyWindowChatSessions")
_SET, _PUSH, _DELETE = 1, 2, 3
# A list in a session is not longer; a larger index would fill the memory.
_MAX_INDEX = 100_000
_TEXT_KINDS = (None, "markdownContent")


class CopilotChat:
    name = "copilot-chat"

    def __init__(self, settings: Path | None = None) -> None:
        self._settings = settings

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the chats under a path, or of all workspaces of the editors on this machine."""
        found = find_items(path, storage_directories(self._settings), _is_chat, "chat")
        # A session that was converted has both files, and the log is the newer one.
        logs = {item.file for item in found if item.file.suffix == ".jsonl"}
        kept = [item for item in found if item.file in logs or item.file.with_suffix(".jsonl") not in logs]
        return [replace(item, modified_at=reread_time(item.modified_at)) for item in kept]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield one chat: each request with what the user wrote, and the answer."""
        session = _replay(item) if item.file.suffix == ".jsonl" else load_json(item)
        if not isinstance(session, dict) or not isinstance(session.get("requests"), list):
            problem = "not a chat of Visual Studio Code: a list of requests is expected"
            raise ReadError(Problem(item.file, None, problem))
        name = get_text(session, "sessionId") or item.file.stem
        requests = dicts_in(session["requests"])
        model = next((found for request in reversed(requests) if (found := get_text(request, "modelId"))), None)
        started_at = parse_timestamp(session.get("creationDate"))
        yield ImportedConversation(name, get_text(session, "customTitle"), model, _directory(item), started_at)
        is_open = is_recently_changed(item.modified_at)
        for number, request in enumerate(requests):
            # An answer keeps its first version in the record, so one that may still grow is left for the next import.
            is_last = number == len(requests) - 1
            request_id = get_text(request, "requestId") or f"{name}:{number}"
            yield from _request_events(request, request_id, with_answer=not (is_open and is_last))


def _is_chat(file: Path) -> bool:
    return file.suffix in (".json", ".jsonl") and file.parent.name in _FOLDERS


def _request_events(request: dict[str, Any], name: str, *, with_answer: bool) -> Iterator[ReadEvent]:
    at = request.get("timestamp")
    message = request.get("message")
    asked = message if isinstance(message, str) else get_text(message, "text")
    if asked:
        yield text_message("user", asked, name, at)
    if not with_answer:
        yield Skipped("answer that may still be written")
        return
    parts = dicts_in(request.get("response"))
    answer = "".join(_part_text(part) for part in parts).strip()
    for number, part in enumerate(parts):
        if part.get("kind") == "toolInvocationSerialized":
            tool = get_text(part, "toolId") or "tool"
            said = _text(part.get("pastTenseMessage")) or _text(part.get("invocationMessage"))
            call_id = get_text(part, "toolCallId") or f"{name}:{number}"
            yield tool_call_message((call_id, tool, {"message": said}), f"{name}/{number}", at)
        elif part.get("kind") not in (*_TEXT_KINDS, "inlineReference"):
            yield Skipped(f"part of an answer: {part.get('kind')}")
    if answer:
        yield text_message("assistant", answer, f"{name}/answer", at)


def _part_text(part: dict[str, Any]) -> str:
    if part.get("kind") == "inlineReference":
        return get_text(part, "name") or ""
    if part.get("kind") == "markdownContent":
        return _text(part.get("content"))
    return _text(part.get("value")) if part.get("kind") is None else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else get_text(value, "value") or ""


def _directory(item: ImportItem) -> str | None:
    """Return the folder of the workspace, which a file above the chats names."""
    found = item_beside(item.file, item.file.parent.parent / "workspace.json", "workspace")
    folder = get_text(read_json_file(found), "folder") if found else None
    return path_of_url(folder) if folder else None


def _replay(item: ImportItem) -> Any:
    """Return the session that a log of changes describes; raises ReadError."""
    session: Any = None
    for line in read_json_lines(item):
        if isinstance(line, Problem):
            if session is None:
                raise ReadError(line)
            # The end of a log that is being written; what was read before is whole.
            break
        entry = line.value
        if session is None and "v" not in entry:
            raise ReadError(Problem(item.file, line.number, "the log does not start with a session"))
        if entry.get("kind") == 0:
            session = entry["v"]
        elif not _change(session, entry):
            raise ReadError(Problem(item.file, line.number, "a change of the log does not fit the session"))
    return session


def _change(session: Any, entry: dict[str, Any]) -> bool:
    """Apply one change; False when its path leads nowhere."""
    path, kind = entry.get("k"), entry.get("kind")
    if not isinstance(path, list) or not path:
        return False
    holder = session
    for key in path[:-1]:
        holder = _at(holder, key)
    last = path[-1]
    if kind == _PUSH:
        pushed = _at(holder, last)
        if pushed is None and isinstance(holder, dict) and isinstance(last, str):
            pushed = holder[last] = []
        if not isinstance(pushed, list):
            return False
        start = entry.get("i")
        if isinstance(start, int) and 0 <= start <= len(pushed):
            del pushed[start:]
        new = entry.get("v")
        pushed.extend(new if isinstance(new, list) else [])
        return True
    if isinstance(holder, dict) and isinstance(last, str):
        if kind == _SET:
            holder[last] = entry.get("v")
        elif kind == _DELETE:
            holder.pop(last, None)
        return True
    if isinstance(holder, list) and isinstance(last, int) and 0 <= last < min(len(holder) + 1, _MAX_INDEX):
        holder[last : last + 1] = [entry.get("v")] if kind == _SET else []
        return True
    return False


def _at(holder: Any, key: Any) -> Any:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    if isinstance(holder, list) and isinstance(key, int) and 0 <= key < len(holder):
        return holder[key]
    return None
