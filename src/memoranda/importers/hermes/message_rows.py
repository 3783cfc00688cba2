"""A row of Hermes's messages table, of whatever schema version, as a message in chat form."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# Structured content is stored behind this mark.
_STRUCTURED = "\x00json:"
_JSON_COLUMNS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
# How Hermes itself begins what it writes into a conversation in place of earlier messages.
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY", "[PRIOR CONTEXT")
# Its own bookkeeping; `api_content` is what was sent to the model with recalled memories in it, said by nobody.
_LEFT_OUT = frozenset({"id", "session_id", "active", "compacted", "api_content", "content", "observed"})

Row = Mapping[str, Any]


def said(row: Row) -> bytes:
    """What makes a message the same one wherever it is written: who said what, or called which tool how."""
    return fingerprint(row.get("role"), row.get("content"), row.get("tool_call_id"), row.get("tool_calls"))


def fingerprint(*values: Any) -> bytes:
    """A short name for values; other values have another one."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        raw = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else repr(value).encode()
        digest.update(b"%s %d\n" % (type(value).__name__.encode(), len(raw)))
        digest.update(raw)
    return digest.digest()


def is_summary(row: Row) -> bool:
    """Whether a message was written by compression, by the way it begins."""
    content = row.get("content")
    return isinstance(content, str) and content.lstrip().startswith(_SUMMARIES)


def was_taken_back(row: Row) -> bool:
    """Whether the user has undone a message: it is neither in the context nor compressed away."""
    return row.get("active") == 0 and not row.get("compacted")


def message(row: Row, external_id: str, *, summary: bool) -> dict[str, Any]:
    """A row in chat form; columns that only newer versions have are kept by their names."""
    found: dict[str, Any] = {
        "role": row.get("role"),
        "content": _content(row.get("content")),
        "external_id": external_id,
    }
    for name, value in row.items():
        if name not in found and name not in _LEFT_OUT and value is not None:
            found[name] = _decoded(value) if name in _JSON_COLUMNS else _text(value)
    if "tool_calls" in found and not isinstance(found["tool_calls"], list):
        # Whatever it is, it is not what a chat API would take for calls.
        found["stored_tool_calls"] = found.pop("tool_calls")
    if row.get("observed"):
        found["observed"] = True
    if summary:
        found["is_summary"] = True
        # The call stands where it was made; here nothing would answer it.
        found.pop("tool_calls", None)
    return found


def _content(stored: Any) -> Any:
    text = _text(stored)
    if isinstance(text, str) and text.startswith(_STRUCTURED):
        return _decoded(text.removeprefix(_STRUCTURED))
    return str(text) if isinstance(text, int | float) else text


def _decoded(stored: Any) -> Any:
    text = _text(stored)
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        # Written by somebody else: what is there is more than nothing.
        return text


def _text(stored: Any) -> Any:
    return stored.decode("utf-8", "backslashreplace") if isinstance(stored, bytes) else stored
