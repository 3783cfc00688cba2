"""Rewrites the message ids that texts mention, because the same messages have other ids in another store.

A summary names the messages it replaces, and a shortened message names its original. An import changes those ids to
the ones of the importing store. It changes a number only if that is certainly an id: in a summary, one within the range
that the summary replaces; in a shortened message, the id of the original.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.memory.record.message_rows import text_of

# A text that contains one of these phrases was shortened.
TAKEN_OUT = "were taken out here to make room"
IMAGE_TAKEN_OUT = "an image was here, in message"

_RANGE = re.compile(r"\bmessages ([0-9]{1,18}) to ([0-9]{1,18})\b")
# "messages 3 to 9", "around_message_id 3 or 9", "message 7", and "[7]" as in the transcript for a summary.
_NAMED = re.compile(
    r"\b(?:messages? |around_message_id )[0-9]{1,18}\b(?: (?:to|or|and) [0-9]{1,18}\b)?|(?<![\w\])])\[[0-9]{1,18}\]"
)
_NUMBER = re.compile(r"[0-9]+")


def renumber_references(message: Mapping[str, Any], new_id: Callable[[int], int | None]) -> Mapping[str, Any]:
    """Change the ids in a message of another store to those of this store; `new_id` returns None for unknown ones."""
    content, original = message.get("content"), message.get("copy_of")
    if message.get("is_summary") and isinstance(content, str) and (span := _RANGE.search(content)):
        renumbered = range(int(span[1]), int(span[2]) + 1)
    elif isinstance(original, int) and _is_shortened(text_of(content)):
        renumbered = range(original, original + 1)
    else:
        return message

    def renumber(old: int) -> int:
        new = new_id(old) if old in renumbered else None
        return old if new is None else new

    return {**message, "content": _renumber(content, renumber)}


def strip_references(stored: Any, *, is_summary: bool) -> Any:
    """Replace the ids in a stored text with 0, so that the same message compares equal in every store."""
    if isinstance(stored, str) and (is_summary or _is_shortened(stored)):
        return _renumber(stored, lambda _: 0)
    return stored


def _is_shortened(text: str) -> bool:
    return TAKEN_OUT in text or IMAGE_TAKEN_OUT in text


def _renumber(content: Any, number: Callable[[int], int]) -> Any:
    if isinstance(content, str):
        return _NAMED.sub(lambda named: _NUMBER.sub(lambda digits: str(number(int(digits[0]))), named[0]), content)
    if isinstance(content, list):
        return [_renumber(part, number) for part in content]
    if isinstance(content, Mapping) and isinstance(content.get("text"), str):
        return {**content, "text": _renumber(content["text"], number)}
    return content
