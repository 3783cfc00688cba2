"""Converts a row of Hermes's messages table, of any schema version, to chat form."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# Structured content is stored after this prefix.
_JSON_PREFIX = "\x00json:"
_JSON_COLUMNS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
# How the summaries start that Hermes writes in place of earlier messages.
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY", "[PRIOR CONTEXT")
# Its own bookkeeping; `api_content` is what was sent to the model, with recalled memories in it.
_EXCLUDED = frozenset({"id", "session_id", "active", "compacted", "api_content", "content", "observed"})

Row = Mapping[str, Any]


def content_fingerprint(row: Row) -> bytes:
    """Return a fingerprint of role, content and tool calls, which is the same wherever a message is repeated."""
    return fingerprint(row.get("role"), row.get("content"), row.get("tool_call_id"), row.get("tool_calls"))


def fingerprint(*values: Any) -> bytes:
    """Return a short digest of values; different values have different digests."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        raw = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else repr(value).encode()
        digest.update(b"%s %d\n" % (type(value).__name__.encode(), len(raw)))
        digest.update(raw)
    return digest.digest()


def is_summary(row: Row) -> bool:
    """Whether compression wrote a message, by how it starts."""
    content = row.get("content")
    return isinstance(content, str) and content.lstrip().startswith(_SUMMARIES)


def chat_message(row: Row, external_id: str, *, summary: bool) -> dict[str, Any]:
    """Return a row in chat form; columns of newer versions are kept by their names."""
    found: dict[str, Any] = {
        "role": row.get("role"),
        "content": _content(row.get("content")),
        "external_id": external_id,
    }
    for name, value in row.items():
        if name not in found and name not in _EXCLUDED and value is not None:
            found[name] = _parse_json(value) if name in _JSON_COLUMNS else _text(value)
    if "tool_calls" in found and not isinstance(found["tool_calls"], list):
        # Not what a chat API accepts as calls.
        found["stored_tool_calls"] = found.pop("tool_calls")
    if row.get("observed"):
        found["observed"] = True
    if summary:
        found["is_summary"] = True
    return found


def _content(stored: Any) -> Any:
    text = _text(stored)
    if isinstance(text, str) and text.startswith(_JSON_PREFIX):
        return _parse_json(text.removeprefix(_JSON_PREFIX))
    return str(text) if isinstance(text, int | float) else text


def _parse_json(stored: Any) -> Any:
    text = _text(stored)
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        # Hermes did not write this; keep it unchanged.
        return text


def _text(stored: Any) -> Any:
    return stored.decode("utf-8", "backslashreplace") if isinstance(stored, bytes) else stored
