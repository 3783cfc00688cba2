"""Converts the messages of pi, the agent library that OpenClaw and Letta Code are made with, to chat form.

A message contains text, thinking, tool calls and their results as blocks.
"""

import json
from typing import Any

from memoranda.importers.chat_messages import dicts_in, get_field, get_text, tool_call

_MAX_UNKNOWN_CHARS = 20_000
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "toolResult": "tool", "tool": "tool"}


def convert_message(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return a message in chat form; None when it is empty."""
    role = message.get("role")
    if role == "bashExecution":
        # A command that the user ran; its output is not the user's.
        parts = [f"$ {get_text(message, 'command') or ''}", get_text(message, "output") or ""]
        return {"role": "system", "content": "\n".join(part for part in parts if part)}
    if role in ("compactionSummary", "branchSummary"):
        text = get_text(message, "summary") or blocks_text(message.get("content"))
        return {"role": "user", "content": text, "is_summary": True} if text else None
    error = get_text(message, "errorMessage")
    content = blocks_text(message.get("content")) or (f"[{error}]" if error else "")
    converted = {"role": _ROLES.get(str(role), "system"), "content": content}
    if role == "user" and get_field(message, "provenance", "kind") not in (None, "external_user"):
        # Another session or the program itself sent it.
        converted["role"] = "system"
    converted |= _reasoning_and_calls(message.get("content"))
    if converted["role"] == "tool":
        converted |= _result_fields(message)
    elif not (content or "reasoning" in converted or "tool_calls" in converted):
        return None
    if reason := get_text(message, "stopReason"):
        converted["finish_reason"] = reason
    return converted


def _reasoning_and_calls(content: Any) -> dict[str, Any]:
    """Return the fields for the thinking and tool call blocks of a message."""
    blocks = dicts_in(content)
    thoughts = [get_text(block, "thinking") for block in blocks if block.get("type") == "thinking"]
    calls = [
        tool_call(
            get_text(block, "id") or "", get_text(block, "name") or "", block.get("arguments", block.get("input"))
        )
        for block in blocks
        if block.get("type") in ("toolCall", "tool_use")
    ]
    fields: dict[str, Any] = {}
    if reasoning := "\n\n".join(filter(None, thoughts)):
        fields["reasoning"] = reasoning
    if calls:
        fields["tool_calls"] = calls
    return fields


def _result_fields(message: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that only the result of a tool has."""
    fields: dict[str, Any] = {"tool_call_id": get_text(message, "toolCallId") or ""}
    if name := get_text(message, "toolName"):
        fields["tool_name"] = name
    if message.get("isError") is True:
        fields["is_error"] = True
    return fields


def blocks_text(content: Any) -> str:
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
