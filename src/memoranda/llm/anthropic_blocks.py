"""A conversation in chat form as Anthropic's messages: content blocks, roles that alternate, nothing empty.

Every message is always written in the same way, whatever comes after it, so that what was sent once is sent again byte
for byte and the cached prefix holds.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.llm.anthropic_thinking import Prefix, arranged, thinking_of
from memoranda.llm.calls import acceptable_arguments, acceptable_name
from memoranda.llm.model import Message
from memoranda.tools import JsonObject

NOTHING_SAID = "[no text]"
GO_ON = "[go on]"
_ID = re.compile(r"[^a-zA-Z0-9_-]")
_DATA_URL = re.compile(r"data:(?P<kind>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)


def as_blocks(messages: Sequence[Message], model: str, before: str = "") -> list[JsonObject]:
    """The messages for a request; `before` is the fingerprint of what stands before them in it."""
    prefix = Prefix(before)
    sent: list[JsonObject] = []
    for message in messages:
        role = "assistant" if message.get("role") == "assistant" else "user"
        if role == "assistant":
            prefix.advance(sent)
            blocks = _assistant_blocks(message, thinking_of(message, model, prefix.digest()))
        else:
            blocks = _tool_result(message) if message.get("role") == "tool" else content_blocks(message.get("content"))
            blocks = blocks or [_text(NOTHING_SAID)]
        if not sent and role == "assistant":
            sent.append({"role": "user", "content": [_text(GO_ON)]})
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += blocks
        elif blocks:
            sent.append({"role": role, "content": blocks})
    if sent and sent[-1]["role"] == "assistant":
        # The newer models refuse to go on with a beginning that they are given.
        sent.append({"role": "user", "content": [_text(GO_ON)]})
    return sent


def content_blocks(content: Any) -> list[JsonObject]:
    """Text or parts of text and images; what is empty is left out."""
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


def _assistant_blocks(message: Message, thinking: Sequence[JsonObject]) -> list[JsonObject]:
    calls = message.get("tool_calls")
    uses = [_tool_use(call) for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    return arranged(thinking, content_blocks(message.get("content")), uses)


def _tool_use(call: Mapping[str, Any]) -> JsonObject:
    function = call.get("function") or {}
    return {
        "type": "tool_use",
        "id": _tool_id(call.get("id")),
        "name": acceptable_name(function.get("name")),
        "input": acceptable_arguments(function.get("arguments")),
    }


def _tool_result(message: Message) -> list[JsonObject]:
    content = content_blocks(message.get("content")) or [_text(NOTHING_SAID)]
    return [{"type": "tool_result", "tool_use_id": _tool_id(message.get("tool_call_id")), "content": content}]


def _tool_id(name: Any) -> str:
    """Ids from other services may hold characters that this one refuses."""
    return _ID.sub("_", str(name or "none"))


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
