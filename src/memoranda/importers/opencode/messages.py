"""What OpenCode keeps of a session and of a message, in whichever form it lies."""

from dataclasses import dataclass
from typing import Any

from memoranda.importers.chat_messages import field, objects, text_field
from memoranda.importers.moments import parse_timestamp

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
    title = text_field(info, "title")
    return StoredSession(
        text_field(info, "id") or host_id,
        None if title is None or title.startswith(_NAMELESS) else title,
        text_field(info, "directory"),
        parse_timestamp(field(info, "time", "created")),
        text_field(info, "parentID"),
        text_field(info, "version"),
    )


def said_in(info: dict[str, Any], name: str, parts: list[dict[str, Any]]) -> StoredMessage:
    """A message from its own description; the first versions kept its parts and times inside."""
    old = info.get("metadata")
    about = old if isinstance(old, dict) else info
    inner = [{"id": f"{name}:{number}", **part} for number, part in enumerate(objects(info.get("parts")))]
    answer = field(old, "assistant") or info
    return StoredMessage(
        name,
        text_field(info, "role") or "assistant",
        field(about, "time", "created"),
        field(about, "time", "completed") is not None or field(info, "error") is not None,
        tuple(parts or inner),
        info.get("summary") is True,
        text_field(answer, "modelID") or text_field(info, "model", "modelID"),
        text_field(answer, "path", "cwd"),
    )
