"""The searchable text of a message: its own text, and the names and arguments of its tool calls without their JSON.

What our own tools recalled, and what they searched for, is not searchable: it would compete with what it quotes.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from memoranda.memory.record.feed import FeedMessage
from memoranda.search.index.postings import ASSISTANT, TITLE, TOOL, USER
from memoranda.support.lazy_pattern import compile_later
from memoranda.support.tool import OWN_TOOLS

MAX_CHARACTERS = 1_000_000
_MAX_DEPTH = 100

# The lower two bits are the role of a posting; the others distinguish the kinds that are TOOL there.
CALLS, SYSTEM, OTHER, SUMMARY = (TOOL | kind << 2 for kind in range(1, 5))
_KINDS = {"user": USER, "assistant": ASSISTANT, "tool": TOOL, "system": SYSTEM}
CONVERSATION_KINDS = frozenset({USER, ASSISTANT, TITLE})
KINDS = (USER, ASSISTANT, TOOL, TITLE, CALLS, SYSTEM, OTHER, SUMMARY)
_ROLES = {"user": (USER,), "assistant": (ASSISTANT, CALLS), "tool": (TOOL,), "system": (SYSTEM,)}

# Fields of structured content that describe it and contain no text.
_ENVELOPE = {"type", "id", "tool_use_id", "tool_call_id", "call_id", "media_type", "mime_type", "mimeType"} | {
    "format", "detail", "role", "cache_control",
}  # fmt: skip
# The types of structured content, and the fields that contain the arguments of a tool.
_PARTS = frozenset(
    {"text", "input_text", "output_text", "image", "image_url", "input_image", "audio", "input_audio", "file"}
    | {"document", "tool_use", "tool_result", "thinking", "reasoning", "refusal"}
)
_ARGUMENT_FIELDS = ("input", "arguments")
# Each program writes the server's name before the tool's in its own way: mcp__memoranda__memory, memoranda.memory ...
_SERVER = r"(?:mcp[_.:/-]{1,2})?memoranda[_.:/-]{1,2}"
TOOL_OF_SERVER = compile_later(rf"{_SERVER}\w+", re.IGNORECASE)
_QUOTING_TOOLS = "|".join(name for name, facts in OWN_TOOLS.items() if facts.quotes_memory)
_SEARCHING_TOOLS = "|".join(name for name, facts in OWN_TOOLS.items() if facts.takes_query)
_OWN_TOOL = compile_later(rf"{_QUOTING_TOOLS}|{_SERVER}\w+", re.IGNORECASE)
_SEARCH_TOOL = compile_later(rf"(?:{_SERVER})?(?:{_SEARCHING_TOOLS})|{_SERVER}(?:search|recall)", re.IGNORECASE)
_DATA_URL = compile_later(r"data:[\w.+/-]+(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=_-]*")
_ENCODED_LINE = 60
_MIN_BLOB = 400
_BLOB = compile_later(r"[A-Za-z0-9+/=_\r\n-]{400,}\Z")


class SearchableText(NamedTuple):
    """The text of one message: `text` is its own, `tool_text` the names and arguments of its tools."""

    kind: int
    text: str
    tool_text: str


def filter_token(field: str, value: object) -> str:
    """The token of all documents with a value in a field; no text contains it."""
    return f"\x01{field}" if value is None else f"\x01{field}={value}"


SPOKEN = filter_token("spoken", 1)
"""The token of what people and models said, and of titles."""


def searchable_text(message: FeedMessage) -> SearchableText:
    """The text of a message that a search can find."""
    content = message.content
    if message.tool_name and message.role == "tool" and _is_own_tool(message.tool_name):
        return SearchableText(TOOL, "", "")
    plain = isinstance(content, str) and len(content) < _MIN_BLOB and ";base64," not in content
    text = content if plain else _join_clipped(iter_texts(content))
    tool_text = _join_clipped(_tool_texts(message)) if message.tool_name or message.tool_calls else ""
    if message.is_summary:
        kind = SUMMARY
    elif message.role == "assistant" and not text.strip():
        kind = CALLS
    else:
        kind = _KINDS.get(message.role, OTHER)
    return SearchableText(kind, text, tool_text)


def title_text(title: str) -> SearchableText:
    return SearchableText(TITLE, title[:MAX_CHARACTERS], "")


def kinds_for_roles(roles: frozenset[str]) -> tuple[int, ...]:
    """The kinds of the messages with these roles; all unknown roles are one kind."""
    return tuple(sorted({kind for role in roles for kind in _ROLES.get(role, (OTHER,))}))


def iter_texts(value: Any, depth: int = 0, *, described: bool = False) -> Iterator[str]:
    """Yield every text in a value of any JSON type, without images and other blobs.

    In a part that names its type, fields that only describe it are omitted; all arguments of a tool are yielded.
    """
    if depth > _MAX_DEPTH:
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
        if described and value.get("type") == "tool_use" and _is_search(value.get("name")):
            return
        for key, item in value.items():
            if not described or key not in _ENVELOPE:
                yield from iter_texts(item, depth + 1, described=described and key not in _ARGUMENT_FIELDS)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from iter_texts(item, depth + 1, described=described)


def _tool_texts(message: FeedMessage) -> Iterator[str]:
    if message.tool_name:
        yield message.tool_name
    if not isinstance(message.tool_calls, list):
        return
    for call in message.tool_calls:
        function = call.get("function", call) if isinstance(call, dict) else None
        if isinstance(function, dict) and not _is_search(function.get("name")):
            if isinstance(name := function.get("name"), str):
                yield name
            yield from _arguments(function.get("arguments", function.get("input")))


@lru_cache(maxsize=256)
def _is_own_tool(name: str) -> bool:
    """Whether a tool is ours: its results quote the memory."""
    return _OWN_TOOL.fullmatch(name) is not None


def _is_search(name: object) -> bool:
    """Whether the arguments of a tool are a query. Those of the tools that save something are not left out."""
    return isinstance(name, str) and _SEARCH_TOOL.fullmatch(name) is not None


def _arguments(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            # A model may write arguments that are not JSON; they are searched as text.
            yield arguments
            return
    yield from iter_texts(arguments)


def _is_blob(text: str) -> bool:
    if len(text) < _MIN_BLOB or " " in text[:_MIN_BLOB] or _BLOB.match(text) is None:
        return False
    # Encoded bytes have long lines; a list of names does not.
    *lines, _ = text.split()
    return all(len(line) >= _ENCODED_LINE for line in lines)


def _join_clipped(pieces: Iterator[str]) -> str:
    taken: list[str] = []
    room = MAX_CHARACTERS
    for piece in pieces:
        taken.append(piece[:room])
        room -= len(taken[-1]) + 1
        if room <= 0:
            break
    return "\n".join(taken)
