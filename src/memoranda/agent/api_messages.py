"""A conversation as chat APIs accept it, whatever interrupts have left of it.

APIs refuse a tool call without its result, a result without its call, and some refuse two messages of the user in a
row. The record keeps what really happened; this makes a copy in which every call has a result right behind it. It
reads nothing but the messages, and what it adds never depends on what comes later than the next message, so a longer
conversation begins with the same bytes as the shorter one did.
"""

import json
from collections.abc import Iterator, Sequence

from memoranda.compression.prompts import HEADER
from memoranda.llm.model import Message
from memoranda.tools import tool_refusal

INTERRUPTED_CALL = json.dumps(tool_refusal("interrupted", "The turn was interrupted before this call had a result."))
INTERRUPTED_ANSWER = "[The turn was interrupted here, before an answer was given.]"
_SUMMARY = HEADER.partition("{")[0]


def to_api_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages with every call answered once, no result without a call, and no question left hanging."""
    kept: list[Message] = []
    for message in _paired(messages):
        if _asks(message) and kept and (kept[-1]["role"] == "tool" or _asks(kept[-1])):
            kept.append({"role": "assistant", "content": INTERRUPTED_ANSWER})
        kept.append(message)
    return kept


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        waiting = _call_ids(message)
        if message["role"] == "tool" or (message["role"] == "assistant" and not message.get("content") and not waiting):
            continue
        # What another program recorded as calls may be none.
        yield message if waiting else {name: value for name, value in message.items() if name != "tool_calls"}
        while waiting and place < len(messages) and messages[place]["role"] == "tool":
            if messages[place].get("tool_call_id") in waiting:
                waiting.remove(messages[place]["tool_call_id"])
                yield messages[place]
            place += 1
        for call_id in waiting:
            yield {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED_CALL}


def _call_ids(message: Message) -> list[str]:
    """The ids of the calls in a message; none unless all of them can be answered."""
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    ids = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    named = [each for each in ids if isinstance(each, str) and each]
    return named if isinstance(calls, list) and len(named) == len(calls) else []


def _asks(message: Message) -> bool:
    """Whether the user says something; a summary of what was compressed has the same role and wants no answer."""
    return message["role"] == "user" and not str(message.get("content")).startswith(_SUMMARY)
