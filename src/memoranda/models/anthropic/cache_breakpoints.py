"""Sets the cache breakpoints of a request: at most four, on blocks that the next request repeats.

1. The system prompt, which covers the tools before it.
2. and 3. The last block before the latest user message, and before the user message before that. Recalled memory is
   fenced into a user message for its own turn only, so the next turn repeats everything up to these blocks. The service
   looks back at most twenty blocks, and the earlier breakpoint is still found after a turn with many tool calls.
4. The last block, from which the next step of this turn continues.

The breakpoints are set on a copy of the request.
"""

from typing import Any

from memoranda.models.anthropic.thinking import THINKING
from memoranda.support.tool import JsonObject

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
        markable = ((position, index) for position, index, block in reversed(blocks[:end]) if _can_be_marked(block))
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


def _can_be_marked(block: JsonObject) -> bool:
    return block["type"] not in THINKING


def _mark_last(blocks: list[JsonObject]) -> list[JsonObject]:
    return [*blocks[:-1], blocks[-1] | _MARK]
