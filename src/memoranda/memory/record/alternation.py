"""Repairs the order of roles in a conversation, for model services that refuse two messages of one role in a row."""

from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]


def repair_alternation(messages: Iterable[Message]) -> list[Message]:
    """A copy in which user and assistant alternate: neighbours of one role are joined, results without a call dropped.

    Crashes and imports leave such sequences. Messages with tool calls and their results stay as they are.
    """
    repaired: list[Message] = []
    open_calls: set[Any] = set()
    for message in messages:
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") in open_calls:
                repaired.append(message)
            continue
        last = repaired[-1] if repaired else {}
        open_calls = {call.get("id") for call in message.get("tool_calls") or () if isinstance(call, dict)}
        if role in ("user", "assistant") and role == last.get("role") and not open_calls and not last.get("tool_calls"):
            repaired[-1] = {**last, "content": _join(last.get("content"), message.get("content"))}
        else:
            repaired.append(message)
    return repaired


def _join(first: Any, second: Any) -> Any:
    if isinstance(first, list) or isinstance(second, list):
        return [*_as_parts(first), *_as_parts(second)]
    return "\n\n".join(text for text in (first, second) if text)


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
