"""Which fields of a message are names and not text: the ids by which it and its tool calls are found."""

from collections.abc import Callable, Mapping
from typing import Any

# The fields that identify a message; they contain no prose.
_IDENTIFYING = ("external_id", "platform_message_id", "message_id", "tool_call_id", "role", "timestamp")


def split_message(message: Mapping[str, Any], name: Callable[[Any], Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that identify a message, as names, and its other fields, with the ids of tool calls as names."""
    identifying = {key: name(message[key]) for key in _IDENTIFYING if key in message}
    texts = {key: value for key, value in message.items() if key not in identifying}
    if isinstance(calls := message.get("tool_calls"), list):
        # The answer to a call finds it by its id.
        texts["tool_calls"] = [
            {**call, "id": name(call["id"])} if isinstance(call, dict) and "id" in call else call for call in calls
        ]
    return identifying, texts
