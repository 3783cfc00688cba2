"""Where cache breakpoints stand in a request: four at most, on blocks that the next request repeats.

1. The system prompt, which covers the tools before it.
2. and 3. What stood before this user message, and before the one before it. Recall is fenced into a user message for
   its own turn only, so these are the places up to which the next turn is sure to be the same; and the second one is
   found again even after a turn of many tool calls, since the service looks back no more than twenty blocks.
4. The very end, which the next step of this turn goes on from.

The marks are put on a copy and never change what is sent otherwise.
"""

from typing import Any

from memoranda.llm.anthropic.thinking import THINKING
from memoranda.tools import JsonObject

_MARK = {"cache_control": {"type": "ephemeral"}}
_IN_MESSAGES = 3
Place = tuple[int, int]


def add_cache_breakpoints(body: JsonObject) -> JsonObject:
    """A copy of the request with its breakpoints."""
    marked = dict(body)
    if body.get("system"):
        marked["system"] = _mark_last(body["system"])
    elif body.get("tools"):
        marked["tools"] = _mark_last(body["tools"])
    messages = [entry | {"content": list(entry["content"])} for entry in body["messages"]]
    for message, block in breakpoint_positions(messages):
        messages[message]["content"][block] = messages[message]["content"][block] | _MARK
    return marked | {"messages": messages}


def breakpoint_positions(messages: list[JsonObject]) -> list[Place]:
    """The blocks to mark, each as the number of its message and its number in there."""
    order = [
        (number, place, block) for number, entry in enumerate(messages) for place, block in enumerate(entry["content"])
    ]
    ends = [len(order), *reversed(_beginnings(messages, order))][:_IN_MESSAGES]
    chosen: list[Place] = []
    for end in ends:
        place = next(((number, place) for number, place, block in reversed(order[:end]) if _takes_mark(block)), None)
        if place is not None and place not in chosen:
            chosen.append(place)
    return sorted(chosen)


def _beginnings(messages: list[JsonObject], order: list[tuple[int, int, Any]]) -> list[int]:
    """Where the user begins to speak, as places in the whole; tool results are not the user."""
    begun: list[int] = []
    speaking = False
    for position, (number, place, block) in enumerate(order):
        if place == 0:
            speaking = False
        said = messages[number]["role"] == "user" and block["type"] != "tool_result"
        if said and not speaking:
            begun.append(position)
        speaking = said
    return begun


def _takes_mark(block: JsonObject) -> bool:
    return block["type"] not in THINKING


def _mark_last(blocks: list[JsonObject]) -> list[JsonObject]:
    return [*blocks[:-1], blocks[-1] | _MARK]
