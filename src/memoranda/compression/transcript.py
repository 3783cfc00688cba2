"""Messages as a text that a model summarises: each with its number and who said it, long ones cut in the middle."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.llm.tokens import estimate_text
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.rotation import LiveMessage
from memoranda.support.shorten import MIDDLE_NOTE, shorten_middle

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])|\n+")
_MOST = {"tool": 2_000}
_MOST_SAID = 6_000
_MOST_ARGUMENTS = 800
# What the words take that say how much is left out.
_CUT_NOTE = 12


def within(text: str, tokens: int) -> str:
    """A text cut so that it takes at most about so many tokens."""
    size = estimate_text(text)
    if size <= tokens:
        return text
    if tokens <= _CUT_NOTE * 2:
        return text[: len(text) * max(0, tokens) // size]
    return shorten_middle(text, len(text) * (tokens - _CUT_NOTE) // size + len(MIDDLE_NOTE))


def as_lines(live: LiveMessage) -> str:
    """One message of the transcript."""
    message = live.message
    role = str(message.get("role"))
    who = f"{role} ({message['tool_name']})" if message.get("tool_name") else role
    said = shorten_middle(text_of(message.get("content")).strip(), _MOST.get(role, _MOST_SAID))
    calls = "".join(f"\n  calls {name} {shorten_middle(asked, _MOST_ARGUMENTS)}" for name, asked in calls_of(message))
    return f"[{live.said_as}] {who}: {said}{calls}"


def calls_of(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and arguments of the tool calls in a message."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    return [(str(each.get("name")), str(each.get("arguments"))) for each in functions if isinstance(each, Mapping)]


def pieces(messages: Iterable[LiveMessage], room: int) -> list[str]:
    """The transcript in as few pieces as there must be, each of at most about so many tokens."""
    made: list[str] = []
    lines: list[str] = []
    used = 0
    for live in messages:
        text = as_lines(live)
        size = estimate_text(text)
        if lines and used + size > room:
            made.append("\n\n".join(lines))
            lines, used = [], 0
        lines.append(within(text, room))
        used += size
    if lines:
        made.append("\n\n".join(lines))
    return made
