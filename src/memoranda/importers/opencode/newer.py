"""Messages in the table `session_message`, where OpenCode 1.18 begins to keep them in one row each."""

from typing import Any

from memoranda.importers.chat_messages import field, objects, text_field, words
from memoranda.importers.opencode.messages import StoredMessage

_ASIDE = ("synthetic", "system")


def said_in_row(kind: str, name: str, at: Any, data: dict[str, Any]) -> StoredMessage:
    """A row as a message with parts, as the older tables have them."""
    made: list[dict[str, Any]] = []
    text = text_field(data, "summary" if kind == "compaction" else "text")
    if kind in ("user", "compaction", *_ASIDE) and text:
        made.append({"type": "text", "id": name, "text": text, "synthetic": kind in _ASIDE})
        made += [_file(name, number, each) for number, each in enumerate(objects(data.get("files")))]
    elif kind == "shell":
        state = {"status": "completed", "input": {"command": data.get("command")}, "output": data.get("output")}
        made.append({"type": "tool", "id": name, "tool": "shell", "callID": data.get("callID"), "state": state})
    elif kind == "assistant":
        made += [_part(name, number, each) for number, each in enumerate(objects(data.get("content")))]
    else:
        made.append({"type": kind, "id": name})
    return StoredMessage(
        name,
        "user" if kind == "compaction" else kind,
        field(data, "time", "created") or at,
        kind != "assistant" or field(data, "time", "completed") is not None or "error" in data,
        tuple(made),
        kind == "compaction",
        text_field(data, "model", "id") or text_field(data, "model", "modelID"),
    )


def _part(name: str, number: int, part: dict[str, Any]) -> dict[str, Any]:
    own = f"{name}:{text_field(part, 'id') or number}"
    if part.get("type") != "tool":
        return {**part, "id": own}
    state = part.get("state")
    texts = [words(each.get("text")) for each in objects(field(state, "content"))]
    output = "\n".join(filter(None, texts)) or words(field(state, "result"))
    times = {"start": field(part, "time", "created"), "end": field(part, "time", "completed")}
    told = {
        "status": field(state, "status"),
        "input": field(state, "input"),
        "output": output,
        "error": text_field(state, "error", "message") or output,
        "time": times,
    }
    return {"type": "tool", "id": own, "tool": part.get("name"), "callID": part.get("id"), "state": told}


def _file(name: str, number: int, file: dict[str, Any]) -> dict[str, Any]:
    shown = text_field(file, "name") or text_field(file, "uri")
    return {"type": "file", "id": f"{name}:file:{number}", "filename": shown, "mime": file.get("mime")}
