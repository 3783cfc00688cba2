"""Signed thinking blocks: recorded with their message, and sent back while their signature is valid.

A signature is valid for one model and for everything before the block: system prompt, tools and messages. Recalled
memory that is fenced into one turn only, a compression, or another model invalidates it, and then the service refuses
the whole request. So each message records the fingerprint of the request that it answered, and its thinking is sent
back only if that is unchanged. Within a turn's own tool calls, where thinking matters, it always is.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memoranda.models.model import Message, Reply
from memoranda.support.tool import JsonObject

THINKING = ("thinking", "redacted_thinking")
# Notes of Memoranda between the recorded blocks: the fingerprint, and the positions of text and tool calls.
_BOUND = "memoranda.bound"
_TEXT = "memoranda.text"
_TOOL_USE = "memoranda.tool_use"
_REDACTED = "[redacted:"


class PrefixFingerprint:
    """The running fingerprint of everything before a message."""

    def __init__(self, before: str) -> None:
        self._hash = hashlib.sha256(before.encode())
        self._included = 0

    def advance(self, sent: Sequence[JsonObject]) -> None:
        """Includes the messages that are complete."""
        for entry in sent[self._included :]:
            self._hash.update(_stable(entry))
        self._included = len(sent)

    def digest(self) -> str:
        return self._hash.hexdigest()[:32]


def fingerprint(body: JsonObject) -> str:
    """The fingerprint of a request's tools and system prompt."""
    return hashlib.sha256(_stable([body.get("tools"), body.get("system")])).hexdigest()


def bind_thinking(reply: Reply, model: str, body: JsonObject) -> Reply:
    """Returns the reply with the fingerprint of the request that its thinking belongs to."""
    if not reply.reasoning_details:
        return reply
    prefix = PrefixFingerprint(fingerprint(body))
    prefix.advance(body["messages"])
    note = {"type": _BOUND, "model": model, "before": prefix.digest()}
    return replace(reply, reasoning_details=[note, *reply.reasoning_details])


def sendable_thinking(message: Message, model: str, before: str) -> list[JsonObject]:
    """The thinking blocks to send back with a message, with the notes between them; none if anything changed."""
    details = message.get("reasoning_details")
    if not isinstance(details, list) or not details or not isinstance(details[0], Mapping):
        return []
    note = details[0]
    if note.get("type") != _BOUND or note.get("model") != model or note.get("before") != before:
        return []
    kept = [dict(detail) for detail in details[1:] if isinstance(detail, Mapping)]
    # A secret that was redacted before the message was recorded invalidated the signature.
    return [] if any(_REDACTED in str(detail.get("thinking", "")) for detail in kept) else kept


def keep_thinking(content: Sequence[Mapping[str, Any]]) -> list[JsonObject] | None:
    """The blocks of an answer to record: thinking blocks whole, of the others only their positions."""
    if not any(block.get("type") in THINKING for block in content):
        return None
    kept: list[JsonObject] = []
    for block in content:
        if block.get("type") in THINKING:
            kept.append(dict(block))
        elif block.get("type") == "text":
            kept.append({"type": _TEXT, "length": len(block.get("text") or "")})
        elif block.get("type") == "tool_use":
            kept.append({"type": _TOOL_USE})
    return kept


def order_blocks(details: Sequence[JsonObject], content: list[JsonObject], uses: list[JsonObject]) -> list[JsonObject]:
    """The blocks of an assistant message in their original order."""
    if not details:
        return [*content, *uses]
    texts = [block["text"] for block in content if block["type"] == "text"]
    whole = "".join(texts)
    lengths = [int(detail["length"]) for detail in details if detail["type"] == _TEXT]
    if sum(lengths) != len(whole) or len(uses) != sum(detail["type"] == _TOOL_USE for detail in details):
        # The message has changed since, so its signatures are no longer valid.
        return [*content, *uses]
    blocks: list[JsonObject] = []
    offset, remaining_uses = 0, iter(uses)
    for detail in details:
        if detail["type"] == _TEXT:
            piece = whole[offset : offset + detail["length"]]
            offset += detail["length"]
            blocks += [{"type": "text", "text": piece}] if piece.strip() else []
        elif detail["type"] == _TOOL_USE:
            blocks.append(next(remaining_uses))
        elif detail["type"] in THINKING:
            blocks.append(detail)
    return blocks


def without_thinking(body: JsonObject) -> JsonObject:
    """Returns the request without its thinking blocks."""
    messages = [
        entry | {"content": [block for block in entry["content"] if block["type"] not in THINKING]}
        for entry in body["messages"]
    ]
    return body | {"messages": [entry for entry in messages if entry["content"]]}


def _stable(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()
