"""Converts chat messages to Anthropic's form: content blocks, alternating roles, no empty message.

A message is converted in the same way whatever follows it, so later requests repeat it byte for byte and the cached
prefix stays valid.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.models.anthropic.call_ids import CallIds
from memoranda.models.anthropic.thinking import PrefixFingerprint, order_blocks, sendable_thinking
from memoranda.models.model import Message
from memoranda.models.tool_call_repair import repair_arguments, repair_name
from memoranda.support.tool import JsonObject

NO_TEXT = "[no text]"
CONTINUE = "[continue]"
_DATA_URL = re.compile(r"data:(?P<kind>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)


def to_anthropic_messages(messages: Sequence[Message], model: str, before: str = "") -> list[JsonObject]:
    """The messages of a request; `before` is the fingerprint of its tools and system prompt."""
    prefix, ids = PrefixFingerprint(before), CallIds()
    sent: list[JsonObject] = []
    for message in messages:
        role = "assistant" if message.get("role") == "assistant" else "user"
        if role == "assistant":
            prefix.advance(sent)
            blocks = _assistant_blocks(message, sendable_thinking(message, model, prefix.digest()), ids)
        else:
            is_result = message.get("role") == "tool"
            blocks = _tool_result(message, ids) if is_result else content_blocks(message.get("content"))
            blocks = blocks or [_text(NO_TEXT)]
        if not sent and role == "assistant":
            sent.append({"role": "user", "content": [_text(CONTINUE)]})
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += blocks
        elif blocks:
            sent.append({"role": role, "content": blocks})
    if sent and sent[-1]["role"] == "assistant":
        # Newer models refuse a request that ends with an assistant message.
        sent.append({"role": "user", "content": [_text(CONTINUE)]})
    return sent


def content_blocks(content: Any) -> list[JsonObject]:
    """The blocks of a content, which is text or a list of parts; empty text is omitted."""
    if content is None:
        return []
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    if isinstance(content, list):
        return [block for part in content for block in _part(part)]
    return [_text(json.dumps(content, ensure_ascii=False))]


def _part(part: Any) -> list[JsonObject]:
    if isinstance(part, str):
        return content_blocks(part)
    if not isinstance(part, Mapping):
        return [_text(json.dumps(part, ensure_ascii=False))]
    if isinstance(part.get("text"), str):
        return content_blocks(part["text"])
    if part.get("type") == "image_url":
        address = part.get("image_url")
        return [_image(str(address.get("url", "")) if isinstance(address, Mapping) else str(address))]
    if part.get("type") in ("image", "document"):
        return [dict(part)]
    return [_text(json.dumps(part, ensure_ascii=False))]


def _image(address: str) -> JsonObject:
    if data := _DATA_URL.fullmatch(address):
        return {"type": "image", "source": {"type": "base64", "media_type": data["kind"], "data": data["data"]}}
    return {"type": "image", "source": {"type": "url", "url": address}}


def _assistant_blocks(message: Message, thinking: Sequence[JsonObject], ids: CallIds) -> list[JsonObject]:
    tool_calls = message.get("tool_calls")
    calls = [call for call in tool_calls if isinstance(call, Mapping)] if isinstance(tool_calls, list) else []
    call_ids = ids.for_calls([call.get("id") for call in calls])
    uses = [_tool_use(call, call_id) for call, call_id in zip(calls, call_ids, strict=True)]
    return order_blocks(thinking, content_blocks(message.get("content")), uses)


def _tool_use(call: Mapping[str, Any], call_id: str) -> JsonObject:
    function = call.get("function") or {}
    return {
        "type": "tool_use",
        "id": call_id,
        "name": repair_name(function.get("name")),
        "input": repair_arguments(function.get("arguments")),
    }


def _tool_result(message: Message, ids: CallIds) -> list[JsonObject]:
    content = content_blocks(message.get("content")) or [_text(NO_TEXT)]
    return [{"type": "tool_result", "tool_use_id": ids.for_result(message.get("tool_call_id")), "content": content}]


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
