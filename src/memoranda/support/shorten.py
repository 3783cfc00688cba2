"""Shortens texts to a limit: at the end, in the middle, or to the size that their JSON may have.

The result never exceeds the limit, the mark included. A cut never splits a surrogate pair, a line end or a character
that is written as several code points (a letter with its accents, a joined emoji, a flag), unless that character has
more than `_MAX_CLUSTER` code points.
"""

import json
import unicodedata
from json.encoder import encode_basestring
from typing import Any

MIDDLE_NOTE = " [… {omitted:,} characters left out …] "
_MAX_CLUSTER = 32
_MAX_ARGUMENT_CHARS = 300
_MAX_CALLS = 5
_MAX_NAME_CHARS = 100
_JOINER = "\u200d"
_encode = json.JSONEncoder(ensure_ascii=False).encode


def shorten_end(text: str, limit: int, mark: str = "…", *, whole_lines: bool = False) -> str:
    """Keep the start of a text and put a mark after it; with `whole_lines` a started line is dropped too."""
    if len(text) <= limit:
        return text
    if limit <= len(mark):
        return text[: _cut_before(text, max(0, limit))]
    kept = text[: _cut_before(text, limit - len(mark))]
    return (_drop_started_line(kept) if whole_lines else kept).rstrip() + mark


def shorten_middle(
    text: str, limit: int, note: str = MIDDLE_NOTE, *, head_share: float = 2 / 3, whole_lines: bool = False
) -> str:
    """Keep the start and the end of a text and say between them how much is missing.

    `note` may contain `{omitted}` and `{total}`, both numbers of characters. `head_share` is how much of the room the
    start gets. A limit that has no room for the note leaves only the start of the text.
    """
    total = len(text)
    if total <= limit:
        return text
    # The omitted part is shorter than the text, so no number in the note is longer than here.
    room = limit - len(note.format(omitted=total, total=total))
    if room <= 0:
        return shorten_end(text, limit, "")
    head_room = int(room * head_share)
    head, tail = text[: _cut_before(text, head_room)], text[_cut_after(text, total - room + head_room) :]
    if whole_lines:
        head, tail = _drop_started_line(head), _drop_started_line(tail[::-1])[::-1]
    return head + note.format(omitted=total - len(head) - len(tail), total=total) + tail


def shorten_for_json(text: str, room: int) -> tuple[str, int]:
    """The longest start of a text that fits into `room` characters as a JSON string, and the size of that string.

    Without a mark; the size includes the quotes.
    """
    end = min(len(text), max(0, room))
    size = len(encode_basestring(text[:end]))
    # Few characters are escaped, so few have to go.
    while end and size > room:
        end -= 1
        size -= len(encode_basestring(text[end])) - 2
    cut = _cut_before(text, end)
    return text[:cut], size - json_size(text[cut:end]) + 2


def json_size(value: Any) -> int:
    """How many characters a value has as JSON."""
    return len(encode_basestring(value)) if isinstance(value, str) else len(_encode(value))


def _cut_before(text: str, index: int) -> int:
    """The last boundary of a character at or before `index`."""
    boundary = index
    while index - boundary < _MAX_CLUSTER and _is_inside_character(text, boundary):
        boundary -= 1
    return index if _is_inside_character(text, boundary) else boundary


def _cut_after(text: str, index: int) -> int:
    """The first boundary of a character at or after `index`."""
    boundary = index
    while boundary - index < _MAX_CLUSTER and _is_inside_character(text, boundary):
        boundary += 1
    return index if _is_inside_character(text, boundary) else boundary


def _is_inside_character(text: str, index: int) -> bool:
    if not 0 < index < len(text):
        return False
    before, after = text[index - 1], text[index]
    if after.isascii():
        return before == "\r" and after == "\n"
    if _JOINER in (before, after):
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if _is_flag_letter(after) and _is_flag_letter(before):
        start = index
        while start > 0 and _is_flag_letter(text[start - 1]):
            start -= 1
        return (index - start) % 2 == 1
    # Accents, vowel signs, variation selectors, and the skin colours of emoji.
    return unicodedata.category(after) in ("Mn", "Me", "Mc") or "\U0001f3fb" <= after <= "\U0001f3ff"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _drop_started_line(text: str) -> str:
    """Drop the part of a line at the end, unless it is more than half of the text."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) // 2 else text


def shorten_calls(calls: Any) -> list[str]:
    """Each tool call as name(arguments), without ids and types, which tell a reader nothing."""
    shown = []
    every = calls if isinstance(calls, list) else [calls]
    for call in every[:_MAX_CALLS]:
        function = call.get("function", call) if isinstance(call, dict) else {}
        name = function.get("name", "tool") if isinstance(function, dict) else "tool"
        arguments = function.get("arguments", function.get("input", "")) if isinstance(function, dict) else call
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        shown.append(f"{str(name)[:_MAX_NAME_CHARS]}({shorten_end(text, _MAX_ARGUMENT_CHARS)})")
    return shown if len(every) <= _MAX_CALLS else [*shown, f"… and {len(every) - _MAX_CALLS} more"]
