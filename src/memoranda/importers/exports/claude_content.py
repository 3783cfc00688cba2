"""Converts one message of a Claude export to chat form; an answer that calls tools becomes several messages."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp

_ROLES = {"human": "user"}
_EXTRACTED = "extracted_content"
_WITHOUT_TEXT = ("token_budget", "flag")

Message = dict[str, Any]


@dataclass(slots=True)
class _MessageParts:
    """A message that is being built."""

    texts: list[str] = field(default_factory=list)
    parts: list[Message] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Message] = field(default_factory=list)
    started_at: float | None = None


def chat_messages(message: Mapping[str, Any], name: str) -> list[Message]:
    """Return the messages in chat form: text, tool results, and the text after them; none if the message is empty."""
    sender = str(message.get("sender") or message.get("role") or "")
    role = _ROLES.get(sender, sender)
    found = [piece for piece in _pieces(message, role, name) if _has_content(piece)]
    created = parse_timestamp(message.get("created_at"))
    for number, piece in enumerate(found):
        piece["external_id"] = name if number == 0 else f"{name}:{number}"
        piece.setdefault("timestamp", created)
    return found


def _pieces(message: Mapping[str, Any], role: str, name: str) -> Iterator[Message]:
    blocks = message.get("content")
    piece, last_call = _MessageParts(), ""
    for index, block in enumerate(blocks if isinstance(blocks, list) else []):
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "tool_result":
            yield _build_message(piece, role)
            piece = _MessageParts()
            yield _tool_result(block, last_call)
            continue
        if kind == "tool_use":
            last_call = str(block.get("id") or f"{name}-{index}")
            piece.calls.append(_tool_call(block, last_call))
        else:
            _add_block(piece, block, kind)
        if piece.started_at is None and isinstance(block, Mapping):
            piece.started_at = parse_timestamp(block.get("start_timestamp"))
    has_text = piece.texts or piece.parts or piece.thoughts or last_call
    text = message.get("text")
    if not has_text and isinstance(text, str):
        # Older exports have no blocks.
        piece.texts.append(text)
    piece.parts += _attachments(message)
    yield _build_message(piece, role)


def _add_block(piece: _MessageParts, block: Any, kind: Any) -> None:
    if kind == "thinking":
        piece.thoughts.append(str(block.get("thinking") or ""))
    elif kind in _WITHOUT_TEXT:
        return
    elif isinstance(block, Mapping) and isinstance(block.get("text"), str):
        piece.texts.append(block["text"])
        if block.get("citations"):
            piece.parts.append({"type": "citations", "citations": block["citations"]})
    elif isinstance(block, str):
        piece.texts.append(block)
    elif block:
        # A block of an unknown kind is kept unchanged.
        piece.parts.append(dict(block) if isinstance(block, Mapping) else {"type": "part", "value": block})


def _tool_call(block: Mapping[str, Any], call_id: str) -> Message:
    arguments = json.dumps(block.get("input"), ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": str(block.get("name")), "arguments": arguments}}


def _tool_result(block: Mapping[str, Any], last_call: str) -> Message:
    content = block.get("content")
    if isinstance(content, list) and all(_is_text(part) for part in content):
        content = "\n".join(part["text"] for part in content)
    found: Message = {
        "role": "tool",
        "content": content or "",
        "tool_name": str(block.get("name") or ""),
        "tool_call_id": str(block.get("tool_use_id") or last_call),
    }
    if block.get("is_error"):
        found["is_error"] = True
    if (started_at := parse_timestamp(block.get("start_timestamp"))) is not None:
        found["timestamp"] = started_at
    return found


def _attachments(message: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the attachments: pasted text and documents with their text, other files by their names."""
    seen: set[str] = set()
    for kind, field_name in (("attachment", "attachments"), ("file", "files"), ("file", "files_v2")):
        entries = message.get(field_name)
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, Mapping):
                continue
            file_id = str(entry.get("file_uuid") or entry.get("id") or f"{kind} {entry.get('file_name')}")
            if kind == "file" and file_id in seen:
                continue
            seen.add(file_id)
            kept = {key: value for key, value in entry.items() if value not in (None, "") and key != _EXTRACTED}
            text = entry.get(_EXTRACTED)
            yield {"type": kind, **kept} | ({"text": text} if isinstance(text, str) and text else {})


def _build_message(piece: _MessageParts, role: str) -> Message:
    text = "\n".join(filter(None, piece.texts))
    content: Any = text or None
    if piece.parts:
        content = [*([{"type": "text", "text": text}] if text else []), *piece.parts]
    found: Message = {"role": role, "content": content}
    if thoughts := "\n\n".join(filter(None, piece.thoughts)):
        found["reasoning"] = thoughts
    if piece.calls:
        found["tool_calls"] = piece.calls
    if piece.started_at is not None:
        found["timestamp"] = piece.started_at
    return found


def _has_content(message: Message) -> bool:
    return message["role"] == "tool" or any(message.get(name) for name in ("content", "reasoning", "tool_calls"))


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
