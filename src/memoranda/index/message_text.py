"""What of a message is indexed: what was said, and beside it what a tool was asked, without any JSON around it."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memoranda.index.postings import ASSISTANT, TITLE, TOOL, USER
from memoranda.sessions.feed import FeedMessage

MOST_CHARACTERS = 1_000_000
_DEEPEST = 100

# The lower two bits are what a posting says; the rest tells apart what is TOOL there.
CALLS, SYSTEM, OTHER, SUMMARY = (TOOL | kind << 2 for kind in range(1, 5))
_KINDS = {"user": USER, "assistant": ASSISTANT, "tool": TOOL, "system": SYSTEM}
_ROLES = {"user": (USER,), "assistant": (ASSISTANT, CALLS), "tool": (TOOL,), "system": (SYSTEM,)}

# Fields of structured content that say what it is instead of saying something.
_ENVELOPE = {"type", "id", "tool_use_id", "tool_call_id", "call_id", "media_type", "mime_type", "mimeType"} | {
    "format", "detail", "role", "cache_control",
}  # fmt: skip
# What structured content is made of, and the fields in it that hold what a tool was asked.
_PARTS = frozenset(
    {"text", "input_text", "output_text", "image", "image_url", "input_image", "audio", "input_audio", "file"}
    | {"document", "tool_use", "tool_result", "thinking", "reasoning", "refusal"}
)
_ASKED = ("input", "arguments")
_DATA_URL = re.compile(r"data:[\w.+/-]+(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=_-]*")
_ENCODED_LINE = 60
_BLOB = re.compile(r"[A-Za-z0-9+/=_\r\n-]{400,}\Z")


class SearchableText(NamedTuple):
    """The text of one message: `said` in its own words, `beside` what belongs to it but was not said."""

    kind: int
    said: str
    beside: str


def searchable_text(message: FeedMessage) -> SearchableText:
    """What can be found of a message."""
    said = _clipped(texts(message.content))
    beside = _clipped(_beside(message)) if message.tool_name or message.tool_calls else ""
    if message.is_summary:
        kind = SUMMARY
    elif message.role == "assistant" and not said.strip():
        kind = CALLS
    else:
        kind = _KINDS.get(message.role, OTHER)
    return SearchableText(kind, said, beside)


def title_text(title: str) -> SearchableText:
    return SearchableText(TITLE, title[:MOST_CHARACTERS], "")


def kinds_for_roles(roles: frozenset[str]) -> tuple[int, ...]:
    """The kinds that messages with these roles have; roles that we have no word for are one kind."""
    return tuple(sorted({kind for role in roles for kind in _ROLES.get(role, (OTHER,))}))


def texts(value: Any, depth: int = 0, *, described: bool = False) -> Iterator[str]:
    """Every text in a value, whatever it is made of; images and other blobs are no text.

    Of a part that says its type, the fields that only describe it are left out; what a tool is asked is all said.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if not _is_blob(value):
            yield _DATA_URL.sub(" ", value) if ";base64," in value else value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, dict):
        described = described or value.get("type") in _PARTS
        for key, item in value.items():
            if not described or key not in _ENVELOPE:
                yield from texts(item, depth + 1, described=described and key not in _ASKED)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item, depth + 1, described=described)


def _beside(message: FeedMessage) -> Iterator[str]:
    if message.tool_name:
        yield message.tool_name
    if not isinstance(message.tool_calls, list):
        return
    for call in message.tool_calls:
        function = call.get("function", call) if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield from _arguments(function.get("arguments", function.get("input")))


def _arguments(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            # A model may write what is no JSON; then it is text.
            yield arguments
            return
    yield from texts(arguments)


def _is_blob(text: str) -> bool:
    if len(text) < 400 or " " in text[:400] or _BLOB.match(text) is None:
        return False
    # Encoded bytes come in long lines; a list of names does not.
    *lines, _ = text.split()
    return all(len(line) >= _ENCODED_LINE for line in lines)


def _clipped(pieces: Iterator[str]) -> str:
    taken: list[str] = []
    room = MOST_CHARACTERS
    for piece in pieces:
        taken.append(piece[:room])
        room -= len(taken[-1]) + 1
        if room <= 0:
            break
    return "\n".join(taken)
