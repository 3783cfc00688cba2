"""What OpenCode keeps of a session and of a message, in whichever form it lies."""

from dataclasses import dataclass
from typing import Any

from memoranda.importers.chat_messages import as_text, dicts_in, get_field, get_text, parse_timestamp

_NAMELESS = ("New session - ", "New Session - ", "Child session - ")


@dataclass(slots=True)
class StoredSession:
    """One session; its model is known when the first answer is."""

    id: str
    title: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent: str | None = None
    version: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message: who spoke, and its parts, each with an id; `ended` when nothing will be added."""

    id: str
    role: str
    at: Any
    ended: bool
    parts: tuple[dict[str, Any], ...]
    is_summary: bool = False
    model: str | None = None
    directory: str | None = None


def session_of(info: dict[str, Any], host_id: str) -> StoredSession:
    """A session from its own description."""
    title = get_text(info, "title")
    return StoredSession(
        get_text(info, "id") or host_id,
        None if title is None or title.startswith(_NAMELESS) else title,
        get_text(info, "directory"),
        parse_timestamp(get_field(info, "time", "created")),
        get_text(info, "parentID"),
        get_text(info, "version"),
    )


def said_in(info: dict[str, Any], name: str, parts: list[dict[str, Any]]) -> StoredMessage:
    """A message from its own description; the first versions kept its parts and times inside."""
    old = info.get("metadata")
    about = old if isinstance(old, dict) else info
    inner = [{"id": f"{name}:{number}", **part} for number, part in enumerate(dicts_in(info.get("parts")))]
    answer = get_field(old, "assistant") or info
    return StoredMessage(
        name,
        get_text(info, "role") or "assistant",
        get_field(about, "time", "created"),
        get_field(about, "time", "completed") is not None or get_field(info, "error") is not None,
        tuple(parts or inner),
        info.get("summary") is True,
        get_text(answer, "modelID") or get_text(info, "model", "modelID"),
        get_text(answer, "path", "cwd"),
    )


_ASIDE = ("synthetic", "system")


def said_in_row(kind: str, name: str, at: Any, data: dict[str, Any]) -> StoredMessage:
    """A row as a message with parts, as the older tables have them."""
    made: list[dict[str, Any]] = []
    text = get_text(data, "summary" if kind == "compaction" else "text")
    if kind in ("user", "compaction", *_ASIDE) and text:
        made.append({"type": "text", "id": name, "text": text, "synthetic": kind in _ASIDE})
        made += [_file(name, number, each) for number, each in enumerate(dicts_in(data.get("files")))]
    elif kind == "shell":
        state = {"status": "completed", "input": {"command": data.get("command")}, "output": data.get("output")}
        made.append({"type": "tool", "id": name, "tool": "shell", "callID": data.get("callID"), "state": state})
    elif kind == "assistant":
        made += [_part(name, number, each) for number, each in enumerate(dicts_in(data.get("content")))]
    else:
        made.append({"type": kind, "id": name})
    return StoredMessage(
        name,
        "user" if kind == "compaction" else kind,
        get_field(data, "time", "created") or at,
        kind != "assistant" or get_field(data, "time", "completed") is not None or "error" in data,
        tuple(made),
        kind == "compaction",
        get_text(data, "model", "id") or get_text(data, "model", "modelID"),
    )


def _part(name: str, number: int, part: dict[str, Any]) -> dict[str, Any]:
    own = f"{name}:{get_text(part, 'id') or number}"
    if part.get("type") != "tool":
        return {**part, "id": own}
    state = part.get("state")
    texts = [as_text(each.get("text")) for each in dicts_in(get_field(state, "content"))]
    output = "\n".join(filter(None, texts)) or as_text(get_field(state, "result"))
    times = {"start": get_field(part, "time", "created"), "end": get_field(part, "time", "completed")}
    told = {
        "status": get_field(state, "status"),
        "input": get_field(state, "input"),
        "output": output,
        "error": get_text(state, "error", "message") or output,
        "time": times,
    }
    return {"type": "tool", "id": own, "tool": part.get("name"), "callID": part.get("id"), "state": told}


def _file(name: str, number: int, file: dict[str, Any]) -> dict[str, Any]:
    shown = get_text(file, "name") or get_text(file, "uri")
    return {"type": "file", "id": f"{name}:file:{number}", "filename": shown, "mime": file.get("mime")}
