"""Converts the events of an OpenClaw transcript, from a file or a database, to messages in chat form.

Every version writes the same kinds of events: first one of type `session`, then `message`, `compaction`,
`model_change` and others.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.pi_messages import blocks_text, convert_message, text_or_none
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ReadEvent, Skipped

Event = dict[str, Any]


@dataclass(slots=True)
class EventThread:
    """One session: converts its events, and collects what they say about the session."""

    host_id: str
    title: str | None = None
    model: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    _yielded: ImportedConversation | None = None

    def convert(self, event: Event, line: int | None, raw: bytes, index: int) -> Iterator[ReadEvent]:
        """Yield the message of an event, or `Skipped`; `index` distinguishes equal lines."""
        kind = event.get("type")
        self._learn(event, kind)
        message = _message_of(event, kind)
        if message is None:
            yield Skipped(_label(event, kind))
            return
        yield from self._conversation()
        message["external_id"] = _external_id(event, raw, index)
        message["timestamp"] = _timestamp(event)
        yield ImportedMessage(message, line)

    def finish(self) -> Iterator[ReadEvent]:
        """Yield the conversation again if something became known after the last message."""
        if self._yielded is not None:
            yield from self._conversation()

    def _conversation(self) -> Iterator[ReadEvent]:
        known = ImportedConversation(
            self.host_id, self.title, self.model, self.directory, self.started_at,
            parent_host_id=self.parent, relation="branch" if self.parent else None, extra=dict(self.extra),
        )  # fmt: skip
        if known != self._yielded:
            self._yielded = known
            yield known

    def _learn(self, event: Event, kind: Any) -> None:
        if kind == "session":
            self.directory = text_or_none(event.get("cwd")) or self.directory
            self.started_at = parse_timestamp(event.get("timestamp")) or self.started_at
            parent = text_or_none(event.get("parentSession"))
            # The path of the file that the session was branched from, or that session's id.
            self.parent = parent.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl") if parent else self.parent
        elif kind == "session_info":
            self.title = text_or_none(event.get("name")) or self.title
        elif kind == "model_change":
            self.model = self.model or text_or_none(event.get("modelId"))
        elif kind == "message":
            message = event.get("message")
            self.model = self.model or (text_or_none(message.get("model")) if isinstance(message, dict) else None)


def _message_of(event: Event, kind: Any) -> dict[str, Any] | None:
    """Return the message of an event in chat form; None when it has none."""
    message = event.get("message")
    if kind == "message" and isinstance(message, dict):
        return convert_message(message)
    if kind == "custom_message" and (text := blocks_text(event.get("content"))):
        return {"role": "system", "content": text}
    if kind in ("compaction", "branch_summary") and (summary := text_or_none(event.get("summary"))):
        return {"role": "user", "content": summary, "is_summary": True}
    return None


def _label(event: Event, kind: Any) -> str:
    custom = event.get("customType")
    name = str(kind or "without type")[:40]
    return f"{name} ({custom[:40]})" if isinstance(custom, str) else name


def _external_id(event: Event, raw: bytes, index: int) -> str:
    """Return the event's id; in the oldest transcripts, which have none, an id made from content and index."""
    found = event.get("id")
    if isinstance(found, str) and found:
        return found
    return f"{index}-{hashlib.sha256(raw.rstrip()).hexdigest()[:16]}"


def _timestamp(event: Event) -> Any:
    """Return when the event was written; without that, when its message was sent."""
    message = event.get("message")
    return event.get("timestamp") or (message.get("timestamp") if isinstance(message, dict) else None)
