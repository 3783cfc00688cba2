"""The transcript that a model summarises: each message with its id and role, long ones shortened in the middle."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.tokens import estimate_text
from memoranda.safety.fence import screen_transcript
from memoranda.support.shorten import MIDDLE_NOTE, shorten_middle

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])|\n+")
_MAX_CHARS_BY_ROLE = {"tool": 2_000}
_MAX_CHARS = 6_000
_MAX_ARGUMENT_CHARS = 800
# Tokens of the note that says how much was omitted.
_NOTE_TOKENS = 12


def shorten_to_tokens(text: str, tokens: int) -> str:
    """Shortens a text to at most about `tokens` tokens."""
    size = estimate_text(text)
    if size <= tokens:
        return text
    if tokens <= _NOTE_TOKENS * 2:
        return text[: len(text) * max(0, tokens) // size]
    return shorten_middle(text, len(text) * (tokens - _NOTE_TOKENS) // size + len(MIDDLE_NOTE))


def transcript_lines(live: LiveMessage) -> str:
    """One message of the transcript; what would give orders to the model that reads it is withheld."""
    message = live.message
    role = str(message.get("role"))
    speaker = f"{role} ({message['tool_name']})" if message.get("tool_name") else role
    said = shorten_middle(text_of(message.get("content")).strip(), _MAX_CHARS_BY_ROLE.get(role, _MAX_CHARS))
    calls = "".join(
        f"\n  calls {name} {shorten_middle(arguments, _MAX_ARGUMENT_CHARS)}" for name, arguments in calls_of(message)
    )
    # The head of the line is ours, so that no text passes for the beginning of another message.
    return f"[{live.recorded_id}] {screen_transcript(speaker)}: {screen_transcript(said + calls)}"


def calls_of(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The name and the arguments of each tool call in a message."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    return [
        (str(function.get("name")), str(function.get("arguments")))
        for function in functions
        if isinstance(function, Mapping)
    ]


def split_transcript(messages: Iterable[LiveMessage], room: int) -> list[str]:
    """The transcript in as few parts as possible, each of at most about `room` tokens."""
    parts: list[str] = []
    lines: list[str] = []
    used = 0
    for live in messages:
        text = transcript_lines(live)
        size = estimate_text(text)
        if lines and used + size > room:
            parts.append("\n\n".join(lines))
            lines, used = [], 0
        lines.append(shorten_to_tokens(text, room))
        used += size
    if lines:
        parts.append("\n\n".join(lines))
    return parts
