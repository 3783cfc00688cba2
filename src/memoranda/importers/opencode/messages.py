"""The sessions and messages that OpenCode stores, in any of its formats."""

from dataclasses import dataclass
from typing import Any

from memoranda.importers.chat_messages import as_text, dicts_in, get_field, get_text, parse_timestamp

_UNTITLED = ("New session - ", "New Session - ", "Child session - ")


@dataclass(slots=True)
class StoredSession:
    """One session; its model becomes known with the first answer."""

    id: str
    title: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent: str | None = None
    version: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message and its parts, each with an id; `ended` when OpenCode will add nothing more."""

    id: str
    role: str
    at: Any
    ended: bool
    parts: tuple[dict[str, Any], ...]
    is_summary: bool = False
    model: str | None = None
    directory: str | None = None


def session_from_info(info: dict[str, Any], host_id: str) -> StoredSession:
    """Build a session from its description."""
    title = get_text(info, "title")
    return StoredSession(
        get_text(info, "id") or host_id,
        None if title is None or title.startswith(_UNTITLED) else title,
        get_text(info, "directory"),
        parse_timestamp(get_field(info, "time", "created")),
        get_text(info, "parentID"),
        get_text(info, "version"),
    )


def message_from_info(info: dict[str, Any], name: str, parts: list[dict[str, Any]]) -> StoredMessage:
    """Build a message from its description; the first versions kept its parts and times in it."""
    old = info.get("metadata")
    details = old if isinstance(old, dict) else info
    inner = [{"id": f"{name}:{number}", **part} for number, part in enumerate(dicts_in(info.get("parts")))]
    answer = get_field(old, "assistant") or info
    return StoredMessage(
        name,
        get_text(info, "role") or "assistant",
        get_field(details, "time", "created"),
        get_field(details, "time", "completed") is not None or get_field(info, "error") is not None,
        tuple(parts or inner),
        info.get("summary") is True,
        get_text(answer, "modelID") or get_text(info, "model", "modelID"),
        get_text(answer, "path", "cwd"),
    )


_ADDED_BY_PROGRAM = ("synthetic", "system")


def message_from_row(kind: str, name: str, at: Any, data: dict[str, Any]) -> StoredMessage:
    """Build a message from a row of the table `session_message`, which OpenCode 1.18 introduced."""
    parts: list[dict[str, Any]] = []
    text = get_text(data, "summary" if kind == "compaction" else "text")
    if kind in ("user", "compaction", *_ADDED_BY_PROGRAM) and text:
        parts.append({"type": "text", "id": name, "text": text, "synthetic": kind in _ADDED_BY_PROGRAM})
        parts += [_convert_file(name, number, entry) for number, entry in enumerate(dicts_in(data.get("files")))]
    elif kind == "shell":
        state = {"status": "completed", "input": {"command": data.get("command")}, "output": data.get("output")}
        parts.append({"type": "tool", "id": name, "tool": "shell", "callID": data.get("callID"), "state": state})
    elif kind == "assistant":
        parts += [_convert_part(name, number, entry) for number, entry in enumerate(dicts_in(data.get("content")))]
    else:
        parts.append({"type": kind, "id": name})
    return StoredMessage(
        name,
        "user" if kind == "compaction" else kind,
        get_field(data, "time", "created") or at,
        kind != "assistant" or get_field(data, "time", "completed") is not None or "error" in data,
        tuple(parts),
        kind == "compaction",
        get_text(data, "model", "id") or get_text(data, "model", "modelID"),
    )


def _convert_part(name: str, number: int, part: dict[str, Any]) -> dict[str, Any]:
    part_id = f"{name}:{get_text(part, 'id') or number}"
    if part.get("type") != "tool":
        return {**part, "id": part_id}
    state = part.get("state")
    texts = [as_text(entry.get("text")) for entry in dicts_in(get_field(state, "content"))]
    output = "\n".join(filter(None, texts)) or as_text(get_field(state, "result"))
    times = {"start": get_field(part, "time", "created"), "end": get_field(part, "time", "completed")}
    converted = {
        "status": get_field(state, "status"),
        "input": get_field(state, "input"),
        "output": output,
        "error": get_text(state, "error", "message") or output,
        "time": times,
    }
    return {"type": "tool", "id": part_id, "tool": part.get("name"), "callID": part.get("id"), "state": converted}


def _convert_file(name: str, number: int, file: dict[str, Any]) -> dict[str, Any]:
    shown = get_text(file, "name") or get_text(file, "uri")
    return {"type": "file", "id": f"{name}:file:{number}", "filename": shown, "mime": file.get("mime")}
