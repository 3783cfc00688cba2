"""How a message becomes a row and a row a message again, without losing anything on the way.

Text is stored as it is. Structured content is JSON, said so by `content_format`, with non-ASCII characters as they
are. Half a surrogate pair, which no database takes, is escaped in JSON. Fields that have no column go to `extra` and
come back where they were; a caller's own field under the name of a column that is the store's comes back in `shadowed`.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.errors import SessionError
from memoranda.sessions.schema import MESSAGES

_BETWEEN_HALVES = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_TEXTS = ("tool_call_id", "tool_name", "finish_reason", "reasoning", "reasoning_content", "external_id")
_JSONS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
_NUMBERS = ("token_count", "copy_of", "is_summary")
_OURS = frozenset({"id", "session_id", "active", "compacted", "rewound", "content_format", "extra"})
# What a message that was read from a store says about its place there; such values are set anew.
_PLACED = {"id": int, "session_id": str, "active": int, "compacted": int, "rewound": int}
SHADOWED = "shadowed"
_LARGEST = 2**62
_MOST_PARTS = 1_000_000
_LEAVES = frozenset({str, int, float, bool, type(None)})
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_DEEPEST = 200
# Which turn a message is part of, and that the turn is done: fields beside the columns, and no part of what was said.
TURN, DONE = "memoranda_turn", "memoranda_done"
TURN_FIELDS = frozenset({TURN, DONE})
# Of a message whose text was replaced for good.
REDACTED = "redacted"
# Other programs' names for the same thing.
_ALIASES = {"platform_message_id": "external_id", "message_id": "external_id"}

# The columns that a writer fills, in the order of `encode`.
WRITTEN = ("role", "content", "content_format", "timestamp", *_TEXTS, *_JSONS, *_NUMBERS, "extra")
READ = tuple(column.name for column in MESSAGES.columns)

Message = dict[str, Any]


def encode(message: Mapping[str, Any], now: float | None = None) -> list[Any]:
    """The values of a new row for the columns in WRITTEN."""
    row: list[Any] = [None] * len(WRITTEN)
    beside: Message = {}
    others: Message = {}
    encoders = []
    for key, value in message.items():
        place = _PLACES.get(key)
        if place is None:
            (others if key in _OURS or key in _ALIASES else beside)[key] = value
        elif value is not None:
            row[place] = value
            if place in _ENCODERS:
                encoders.append(place)
    if others:
        encoders += _place(others, row, beside)
    if not isinstance(row[_ROLE], str) or not row[_ROLE]:
        raise SessionError(f"A message needs a role such as user or assistant, not {row[_ROLE]!r}.")
    if not _storable(row[_ROLE]):
        raise SessionError(f"A role must be text without half characters, not {row[_ROLE][:60]!r}.")
    row[_CONTENT], row[_FORMAT] = encode_content(row[_CONTENT])
    if row[_TIMESTAMP] is None:
        row[_TIMESTAMP] = time.time() if now is None else now
    else:
        row[_TIMESTAMP] = seconds(row[_TIMESTAMP])
    for place in encoders:
        row[place] = _ENCODERS[place](WRITTEN[place], row[place], beside)
    if row[_COPY_OF] is not None:
        # The name that a message has elsewhere stays with the first one.
        row[_EXTERNAL_ID] = None
        beside.pop("external_id", None)
    row[_EXTRA] = dump_json(beside) if beside else None
    return row


def _place(others: Message, row: list[Any], beside: Message) -> list[int]:
    """Find room for fields under other programs' names and under names of the store; the places to encode."""
    filled = []
    for key, value in others.items():
        if value in (None, ""):
            continue
        if key in _OURS:
            if not isinstance(value, _PLACED.get(key, ())):
                given = beside.get(SHADOWED, {})
                beside[SHADOWED] = {**(given if isinstance(given, dict) else {SHADOWED: given}), key: value}
        elif not row[_PLACES[_ALIASES[key]]]:
            filled.append(_PLACES[_ALIASES[key]])
            row[filled[-1]] = value
        else:
            # Two names for the same thing: the other one is kept as it is.
            beside[key] = value
    return filled


def decode(row: Sequence[Any]) -> Message:
    """A message with every column in READ, decoded, and its other fields beside them."""
    message: Message = dict(zip(READ, row, strict=True))
    message["content"] = decode_content(message["content"], message.pop("content_format"))
    for name in _JSONS:
        if message[name] is not None:
            message[name] = decode_json(message[name])
    extra = message.pop("extra")
    return message if extra is None else message | decode_json(extra)


def as_chat(message: Message) -> Message:
    """A message as chat APIs take it: what is not set is left out, and so is what only the store needs."""
    kept = {key: value for key, value in message.items() if key not in _BOOKKEEPING and value is not None}
    return {"role": message["role"], "content": message["content"]} | kept


_BOOKKEEPING = (
    _OURS
    | {"role", "content", "copy_of", "is_summary", "token_count", "external_id", "timestamp", SHADOWED, REDACTED}
    | TURN_FIELDS
)


def encode_content(content: Any) -> tuple[str | None, str | None]:
    """The stored form of any content, and its format."""
    if content is None:
        return None, None
    if not isinstance(content, str):
        return dump_json(content), "json"
    if _storable(content):
        return content, None
    # Two halves that stand together would come back as one character.
    pieces = _BETWEEN_HALVES.split(content)
    return (dump_json(content), "json") if len(pieces) == 1 else (dump_json(pieces), "pieces")


def _require_plain(value: Any) -> None:
    """Raise for keys that JSON would turn into text without a word, and for what is too deep to be read again."""
    level, parts = [value], 0
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for each in level:
            if type(each) in _LEAVES:
                continue
            if type(each) is dict or isinstance(each, Mapping):
                for key in each:
                    if not isinstance(key, str):
                        raise SessionError("A structure that is stored must have text as its keys.")
                below += each.values()
            elif isinstance(each, (list, tuple)):
                below += each
        parts += len(below)
        if not below:
            return
        if parts > _MOST_PARTS:
            break
        level = below
    raise SessionError("What is to be stored is nested too deeply, has too many parts, or contains itself.")


def require_storable(name: str, text: Any) -> None:
    """Raise unless it is nothing, or text that a database can hold."""
    if text is not None and (not isinstance(text, str) or not _storable(text)):
        raise SessionError(f"{name} must be text without half characters, not {str(text)[:60]!r}.")


def decode_content(stored: str | None, content_format: str | None) -> Any:
    if content_format is None or stored is None:
        return stored
    value = decode_json(stored)
    return "".join(value) if content_format == "pieces" else value


def dump_json(value: Any) -> str:
    """JSON with every character as it is, except those that cannot be stored."""
    _require_plain(value)
    try:
        text = _as_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SessionError(f"A message holds something that is neither text nor JSON: {error}.") from error
    return text if _storable(text) else _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def decode_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # Written by somebody else: what is there is more than nothing.
        return text


def text_of(content: Any) -> str:
    """The words in any content: text itself, or the text parts of structured content, one per line."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        return "\n".join(text_of(content[key]) for key in ("text", "content", "output") if content.get(key))
    return str(content)


def _storable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encode_text(name: str, value: Any, beside: Message) -> str | None:
    if not isinstance(value, str):
        raise SessionError(f"{name} must be text, not {type(value).__name__}.")
    if name == "external_id" and not value:
        # No name at all: two messages without one are two.
        return None
    if _storable(value):
        return value
    if name == "external_id":
        # By this messages are told apart: no two may become one.
        raise SessionError(f"external_id must be text without half characters, not {value[:60]!r}.")
    beside[name] = value
    return _HALF_PAIR.sub("\ufffd", value)


def _encode_json(name: str, value: Any, beside: Message) -> str | None:
    if value == []:
        return None
    if isinstance(value, str):
        # Some callers hand on what they read from elsewhere, already as JSON.
        value = decode_json(value)
    return dump_json(value)


def encode_number(name: str, value: Any, beside: Message | None = None) -> int:
    """A whole number that a database can hold."""
    if isinstance(value, int) and abs(value) < _LARGEST:
        return int(value)
    raise SessionError(f"{name} must be a whole number, not {str(value)[:60]}.")


def _encode_flag(name: str, value: Any, beside: Message) -> int | None:
    if not isinstance(value, int):
        raise SessionError(f"{name} must be true or false, not {str(value)[:60]}.")
    return 1 if value else None


def seconds(value: Any) -> float:
    """A moment that a caller named, as seconds since 1970."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -_LARGEST < value < _LARGEST:
        return float(value)
    if isinstance(value, datetime):
        return value.timestamp()
    raise SessionError(f"{str(value)[:60]} is not a time: give seconds since 1970 or a datetime.")


_PLACES = {name: place for place, name in enumerate(WRITTEN) if name not in _OURS}
_ROLE, _CONTENT, _FORMAT, _TIMESTAMP, _EXTERNAL_ID, _COPY_OF, _EXTRA = map(
    WRITTEN.index,
    ("role", "content", "content_format", "timestamp", "external_id", "copy_of", "extra"),
)
_ENCODERS: dict[int, Callable[[str, Any, Message], Any]] = {
    **{WRITTEN.index(name): _encode_text for name in _TEXTS},
    **{WRITTEN.index(name): _encode_json for name in _JSONS},
    **{WRITTEN.index(name): encode_number for name in ("token_count", "copy_of")},
    WRITTEN.index("is_summary"): _encode_flag,
}
