"""Converts chat messages to a request of Anthropic's API: content blocks, acceptable call ids, cache breakpoints.

A message is converted in the same way whatever follows it, so later requests repeat it byte for byte and the cached
prefix stays valid.

Call ids must be unique in a request. Some models name every first call "call_0", and so do imported histories. The
record keeps the original ids; in a request, a repeated id gets a number, and so does the id in its result. The new id
depends only on the messages before the call, so it is the same in every later request.

There are at most four cache breakpoints, on blocks that the next request repeats:

1. The system prompt, which covers the tools before it.
2. and 3. The last block before the latest user message, and before the user message before that. Recalled memory is
   fenced into a user message for its own turn only, so the next turn repeats everything up to these blocks. The service
   looks back at most twenty blocks, and the earlier breakpoint is still found after a turn with many tool calls.
4. The last block, from which the next step of this turn continues.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.models.anthropic.thinking import THINKING, PrefixFingerprint, order_blocks, sendable_thinking
from memoranda.models.model import Message
from memoranda.models.sdk_model import repair_arguments, repair_name
from memoranda.support.tool import JsonObject

_INVALID = re.compile(r"[^a-zA-Z0-9_-]")


class CallIds:
    """The call ids of one request; the caller asks for them in the order in which the messages are sent."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._repetitions: dict[str, int] = {}
        self._unanswered: dict[str, list[str]] = {}

    def for_calls(self, originals: list[Any]) -> list[str]:
        """The ids for the calls of one message."""
        call_ids = [self._make_unique(_acceptable(original)) for original in originals]
        # The results that follow answer these calls, not earlier calls with the same id.
        self._unanswered |= {str(original): [] for original in originals}
        for original, call_id in zip(originals, call_ids, strict=True):
            self._unanswered[str(original)].append(call_id)
        return call_ids

    def for_result(self, original: Any) -> str:
        """The id of the call that a result answers: the first call with this id that has no result yet."""
        unanswered = self._unanswered.get(str(original))
        if not unanswered:
            return _acceptable(original)
        return unanswered.pop(0) if len(unanswered) > 1 else unanswered[0]

    def _make_unique(self, call_id: str) -> str:
        unused = call_id
        while unused in self._used:
            self._repetitions[call_id] = self._repetitions.get(call_id, 1) + 1
            unused = f"{call_id}_{self._repetitions[call_id]}"
        self._used.add(unused)
        return unused


def _acceptable(original: Any) -> str:
    return _INVALID.sub("_", str(original or "none"))


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


_MARK = {"cache_control": {"type": "ephemeral"}}
_MAX_IN_MESSAGES = 3
Position = tuple[int, int]
"""Index of a message, and index of a block in it."""


def add_cache_breakpoints(body: JsonObject) -> JsonObject:
    """Returns a copy of the request with its breakpoints."""
    marked = dict(body)
    if body.get("system"):
        marked["system"] = _mark_last(body["system"])
    elif body.get("tools"):
        marked["tools"] = _mark_last(body["tools"])
    messages = [entry | {"content": list(entry["content"])} for entry in body["messages"]]
    for message, block in breakpoint_positions(messages):
        messages[message]["content"][block] = messages[message]["content"][block] | _MARK
    return marked | {"messages": messages}


def breakpoint_positions(messages: list[JsonObject]) -> list[Position]:
    """The blocks to mark."""
    blocks = [
        (position, index, block)
        for position, message in enumerate(messages)
        for index, block in enumerate(message["content"])
    ]
    ends = [len(blocks), *reversed(_user_starts(messages, blocks))][:_MAX_IN_MESSAGES]
    chosen: list[Position] = []
    for end in ends:
        markable = (
            (position, index) for position, index, block in reversed(blocks[:end]) if block["type"] not in THINKING
        )
        found = next(markable, None)
        if found is not None and found not in chosen:
            chosen.append(found)
    return sorted(chosen)


def _user_starts(messages: list[JsonObject], blocks: list[tuple[int, int, Any]]) -> list[int]:
    """The indexes in `blocks` at which a text of the user starts; tool results are not the user's."""
    starts: list[int] = []
    in_user_text = False
    for number, (position, index, block) in enumerate(blocks):
        if index == 0:
            in_user_text = False
        is_user_text = messages[position]["role"] == "user" and block["type"] != "tool_result"
        if is_user_text and not in_user_text:
            starts.append(number)
        in_user_text = is_user_text
    return starts


def _mark_last(blocks: list[JsonObject]) -> list[JsonObject]:
    return [*blocks[:-1], blocks[-1] | _MARK]
