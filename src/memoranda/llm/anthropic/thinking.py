"""Signed thinking: kept with the message that it led to, and sent back exactly as long as the service takes it.

A signature holds for one model and for everything that stood before the block: system prompt, tools, messages. Recall
that was fenced into one turn and is gone in the next, a compression, another model: each of them makes the service
refuse the whole request. So each message remembers the fingerprint of what it was an answer to, and its thinking goes
back only where that is unchanged. The memory of a turn's own tool calls, where thinking matters, always is.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memoranda.llm.model import Message, Reply
from memoranda.tools import JsonObject

THINKING = ("thinking", "redacted_thinking")
# Our own notes among the vendor's blocks: where the thinking belongs, and where other blocks stood between it.
_BOUND = "memoranda.bound"
_TEXT = "memoranda.text"
_TOOL_USE = "memoranda.tool_use"
_REDACTED = "[redacted:"


class PrefixFingerprint:
    """The running fingerprint of what stands before a message."""

    def __init__(self, before: str) -> None:
        self._hash = hashlib.sha256(before.encode())
        self._taken = 0

    def advance(self, sent: Sequence[JsonObject]) -> None:
        """Take in messages that are complete."""
        for entry in sent[self._taken :]:
            self._hash.update(_stable(entry))
        self._taken = len(sent)

    def digest(self) -> str:
        return self._hash.hexdigest()[:32]


def fingerprint(body: JsonObject) -> str:
    """Of what a request holds before its messages."""
    return hashlib.sha256(_stable([body.get("tools"), body.get("system")])).hexdigest()


def bind_thinking(reply: Reply, model: str, body: JsonObject) -> Reply:
    """The reply with a note of what its thinking is bound to."""
    if not reply.reasoning_details:
        return reply
    prefix = PrefixFingerprint(fingerprint(body))
    prefix.advance(body["messages"])
    note = {"type": _BOUND, "model": model, "before": prefix.digest()}
    return replace(reply, reasoning_details=[note, *reply.reasoning_details])


def sendable_thinking(message: Message, model: str, before: str) -> list[JsonObject]:
    """The blocks that may go back with a message, and the notes between them; none when anything has changed."""
    details = message.get("reasoning_details")
    if not isinstance(details, list) or not details or not isinstance(details[0], Mapping):
        return []
    note = details[0]
    if note.get("type") != _BOUND or note.get("model") != model or note.get("before") != before:
        return []
    kept = [dict(detail) for detail in details[1:] if isinstance(detail, Mapping)]
    # A credential that was taken out on the way into the record broke the signature.
    return [] if any(_REDACTED in str(detail.get("thinking", "")) for detail in kept) else kept


def keep_thinking(content: Sequence[Mapping[str, Any]]) -> list[JsonObject] | None:
    """What to keep of an answer's blocks: thinking as it is, of the others only their place."""
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


def order_blocks(details: Sequence[JsonObject], said: list[JsonObject], uses: list[JsonObject]) -> list[JsonObject]:
    """The blocks of an assistant message in the order in which they came."""
    if not details:
        return [*said, *uses]
    texts = [block["text"] for block in said if block["type"] == "text"]
    whole = "".join(texts)
    lengths = [int(detail["length"]) for detail in details if detail["type"] == _TEXT]
    if sum(lengths) != len(whole) or len(uses) != sum(detail["type"] == _TOOL_USE for detail in details):
        # The message was changed since, and with it everything that the signature stands for.
        return [*said, *uses]
    blocks: list[JsonObject] = []
    place, waiting = 0, iter(uses)
    for detail in details:
        if detail["type"] == _TEXT:
            piece = whole[place : place + detail["length"]]
            place += detail["length"]
            blocks += [{"type": "text", "text": piece}] if piece.strip() else []
        elif detail["type"] == _TOOL_USE:
            blocks.append(next(waiting))
        elif detail["type"] in THINKING:
            blocks.append(detail)
    return blocks


def without_thinking(body: JsonObject) -> JsonObject:
    """The request with every thinking block left out."""
    messages = [
        entry | {"content": [block for block in entry["content"] if block["type"] not in THINKING]}
        for entry in body["messages"]
    ]
    return body | {"messages": [entry for entry in messages if entry["content"]]}


def _stable(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()
