"""The lines of an OpenClaw transcript, in a file or in a database: messages, and what else happened in between.

Every version has written the same kind of events: first one of type `session`, then `message`, `compaction`,
`model_change` and others. Messages keep text, thinking, tool calls and their results as blocks.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ReadEvent, Skipped

Event = dict[str, Any]
_LONGEST_UNKNOWN = 20_000
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "toolResult": "tool", "tool": "tool"}


@dataclass(slots=True)
class EventThread:
    """One session on its way: what its events have said of it so far."""

    host_id: str
    title: str | None = None
    model: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    _said: ImportedConversation | None = None

    def given(self, event: Event, number: int | None, raw: bytes, place: int) -> Iterator[ReadEvent]:
        """What an event gives; `number` is its line for people, `place` what tells equal lines apart."""
        kind = event.get("type")
        self._learn(event, kind)
        message = _message_of(event, kind)
        if message is None:
            yield Skipped(_name_of(event, kind))
            return
        yield from self._conversation()
        message["external_id"] = _external_id(event, raw, place)
        message["timestamp"] = _time_of(event)
        yield ImportedMessage(message, number)

    def ended(self) -> Iterator[ReadEvent]:
        """What became known after the last message."""
        if self._said is not None:
            yield from self._conversation()

    def _conversation(self) -> Iterator[ReadEvent]:
        known = ImportedConversation(
            self.host_id, self.title, self.model, self.directory, self.started_at,
            parent_host_id=self.parent, relation="branch" if self.parent else None, extra=dict(self.extra),
        )  # fmt: skip
        if known != self._said:
            self._said = known
            yield known

    def _learn(self, event: Event, kind: Any) -> None:
        if kind == "session":
            self.directory = _text(event.get("cwd")) or self.directory
            self.started_at = parse_timestamp(event.get("timestamp")) or self.started_at
            parent = _text(event.get("parentSession"))
            # A path of the file it was branched from, or its id.
            self.parent = parent.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl") if parent else self.parent
        elif kind == "session_info":
            self.title = _text(event.get("name")) or self.title
        elif kind == "model_change":
            self.model = self.model or _text(event.get("modelId"))
        elif kind == "message":
            message = event.get("message")
            self.model = self.model or (_text(message.get("model")) if isinstance(message, dict) else None)


def _message_of(event: Event, kind: Any) -> dict[str, Any] | None:
    """The message of an event in chat form; None when it holds none."""
    message = event.get("message")
    if kind == "message" and isinstance(message, dict):
        return _said(message)
    if kind == "custom_message" and (words := _words(event.get("content"))):
        return {"role": "system", "content": words}
    if kind in ("compaction", "branch_summary") and (summary := _text(event.get("summary"))):
        return {"role": "user", "content": summary, "is_summary": True}
    return None


def _said(message: Event) -> dict[str, Any] | None:
    role = message.get("role")
    if role == "bashExecution":
        # A command that the user ran, and what came of it.
        parts = [f"$ {_text(message.get('command')) or ''}", _text(message.get("output")) or ""]
        return {"role": "user", "content": "\n".join(part for part in parts if part)}
    if role in ("compactionSummary", "branchSummary"):
        text = _text(message.get("summary")) or _words(message.get("content"))
        return {"role": "user", "content": text, "is_summary": True} if text else None
    content = message.get("content")
    made: dict[str, Any] = {"role": _ROLES.get(str(role), "system"), "content": _words(content)}
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    thoughts = [_text(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
    thought = "\n\n".join(filter(None, thoughts))
    calls = [_call(block) for block in blocks if block.get("type") in ("toolCall", "tool_use")]
    if thought:
        made["reasoning"] = thought
    if calls:
        made["tool_calls"] = calls
    if made["role"] == "tool":
        made["tool_call_id"] = _text(message.get("toolCallId")) or ""
        if name := _text(message.get("toolName")):
            made["tool_name"] = name
        if message.get("isError") is True:
            made["is_error"] = True
    if reason := _text(message.get("stopReason")):
        made["finish_reason"] = reason
    if error := _text(message.get("errorMessage")):
        made["content"] = made["content"] or f"[{error}]"
    return made if made["content"] or thought or calls or made["role"] == "tool" else None


def _call(block: Event) -> dict[str, Any]:
    arguments = block.get("arguments") if "arguments" in block else block.get("input")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    name = _text(block.get("name")) or ""
    return {"id": _text(block.get("id")) or "", "type": "function", "function": {"name": name, "arguments": text}}


def _words(content: Any) -> str:
    """The words of some content; pictures and other things are named, with their size."""
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
    return text if len(text) <= _LONGEST_UNKNOWN else f"[{kind}: {len(text):,} characters, not imported]"


def _name_of(event: Event, kind: Any) -> str:
    custom = event.get("customType")
    name = str(kind or "without type")[:40]
    return f"{name} ({custom[:40]})" if isinstance(custom, str) else name


def _external_id(event: Event, raw: bytes, place: int) -> str:
    """The event's own id; the oldest transcripts have none, and are known by what they say and where."""
    found = event.get("id")
    if isinstance(found, str) and found:
        return found
    return f"{place}-{hashlib.sha256(raw.rstrip()).hexdigest()[:16]}"


def _time_of(event: Event) -> Any:
    """When it was said: an event has the moment at which it was written down, a message often the one before."""
    message = event.get("message")
    return event.get("timestamp") or (message.get("timestamp") if isinstance(message, dict) else None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
