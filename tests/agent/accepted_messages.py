"""What chat APIs insist on, as an assertion: every call has one result right behind it, and every result has a call."""

from collections.abc import Iterable, Mapping
from typing import Any


def assert_accepted(messages: Iterable[Mapping[str, Any]]) -> None:
    """Fail where a chat API would refuse the conversation."""
    waiting: list[str] = []
    last = ""
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
        else:
            assert waiting == []
            assert not (message["role"] == "user" and last in ("user", "tool"))
            waiting = [call["id"] for call in message.get("tool_calls") or []]
        last = message["role"]
    assert waiting == []
