"""Converts the events of an OpenClaw transcript, from a file or a database, to messages in chat form.

Every version writes the same kinds of events: first one of type `session`, then `message`, `compaction`,
`model_change` and others. Messages contain text, thinking, tool calls and their results as blocks.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ReadEvent, Skipped

Event = dict[str, Any]
_MAX_UNKNOWN_CHARS = 20_000
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "toolResult": "tool", "tool": "tool"}


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
            self.directory = _text(event.get("cwd")) or self.directory
            self.started_at = parse_timestamp(event.get("timestamp")) or self.started_at
            parent = _text(event.get("parentSession"))
            # The path of the file that the session was branched from, or that session's id.
            self.parent = parent.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl") if parent else self.parent
        elif kind == "session_info":
            self.title = _text(event.get("name")) or self.title
        elif kind == "model_change":
            self.model = self.model or _text(event.get("modelId"))
        elif kind == "message":
            message = event.get("message")
            self.model = self.model or (_text(message.get("model")) if isinstance(message, dict) else None)


def _message_of(event: Event, kind: Any) -> dict[str, Any] | None:
    """Return the message of an event in chat form; None when it has none."""
    message = event.get("message")
    if kind == "message" and isinstance(message, dict):
        return _convert_message(message)
    if kind == "custom_message" and (text := _content_text(event.get("content"))):
        return {"role": "system", "content": text}
    if kind in ("compaction", "branch_summary") and (summary := _text(event.get("summary"))):
        return {"role": "user", "content": summary, "is_summary": True}
    return None


def _convert_message(message: Event) -> dict[str, Any] | None:
    """Return a message in chat form; None when it is empty."""
    role = message.get("role")
    if role == "bashExecution":
        # A command that the user ran, with its output.
        parts = [f"$ {_text(message.get('command')) or ''}", _text(message.get("output")) or ""]
        return {"role": "user", "content": "\n".join(part for part in parts if part)}
    if role in ("compactionSummary", "branchSummary"):
        text = _text(message.get("summary")) or _content_text(message.get("content"))
        return {"role": "user", "content": text, "is_summary": True} if text else None
    error = _text(message.get("errorMessage"))
    content = _content_text(message.get("content")) or (f"[{error}]" if error else "")
    converted = {"role": _ROLES.get(str(role), "system"), "content": content}
    converted |= _reasoning_and_calls(message.get("content"))
    if converted["role"] == "tool":
        converted |= _result_fields(message)
    elif not (content or "reasoning" in converted or "tool_calls" in converted):
        return None
    if reason := _text(message.get("stopReason")):
        converted["finish_reason"] = reason
    return converted


def _reasoning_and_calls(content: Any) -> dict[str, Any]:
    """Return the fields for the thinking and tool call blocks of a message."""
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    thoughts = [_text(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
    calls = [_tool_call(block) for block in blocks if block.get("type") in ("toolCall", "tool_use")]
    fields: dict[str, Any] = {}
    if reasoning := "\n\n".join(filter(None, thoughts)):
        fields["reasoning"] = reasoning
    if calls:
        fields["tool_calls"] = calls
    return fields


def _result_fields(message: Event) -> dict[str, Any]:
    """Return the fields that only the result of a tool has."""
    fields: dict[str, Any] = {"tool_call_id": _text(message.get("toolCallId")) or ""}
    if name := _text(message.get("toolName")):
        fields["tool_name"] = name
    if message.get("isError") is True:
        fields["is_error"] = True
    return fields


def _tool_call(block: Event) -> dict[str, Any]:
    arguments = block.get("arguments") if "arguments" in block else block.get("input")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    name = _text(block.get("name")) or ""
    return {"id": _text(block.get("id")) or "", "type": "function", "function": {"name": name, "arguments": text}}


def _content_text(content: Any) -> str:
    """Return content as text, with placeholders for images and other blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    return "\n\n".join(text for text in map(_block_text, content) if text.strip())


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return block if isinstance(block, str) else json.dumps(block, ensure_ascii=False)
    kind = block.get("type")
    if kind in ("thinking", "toolCall", "tool_use", "redacted_thinking"):
        return ""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    data = block.get("data")
    if isinstance(data, str):
        return f"[{kind}: {block.get('mimeType') or 'unknown'}, {len(data) * 3 // 4:,} bytes, not imported]"
    text = json.dumps(block, ensure_ascii=False)
    return text if len(text) <= _MAX_UNKNOWN_CHARS else f"[{kind}: {len(text):,} characters, not imported]"


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


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
