"""Messages that name others by their numbers, which are other numbers in another store.

A summary says which messages it stands for, and what was cut short says which message holds all of it. On the way into
another store such a text gets the numbers that those messages have there. A number is translated only where it surely
is one: in a summary if it lies in the range that the summary stands for, in what was cut short if it is the number of
the message that is repeated.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.sessions.message_rows import text_of

# By these words a text that was cut short is known.
TAKEN_OUT = "were taken out here to make room"
IMAGE_TAKEN_OUT = "an image was here, in message"

_RANGE = re.compile(r"\bmessages ([0-9]{1,18}) to ([0-9]{1,18})\b")
# "messages 3 to 9", "around_message_id 3 or 9", "message 7", and "[7]" as in the transcript that a summary is made of.
_NAMED = re.compile(
    r"\b(?:messages? |around_message_id )[0-9]{1,18}\b(?: (?:to|or|and) [0-9]{1,18}\b)?|(?<![\w\])])\[[0-9]{1,18}\]"
)
_NUMBER = re.compile(r"[0-9]+")


def translated(message: Mapping[str, Any], new_ids: Mapping[int, int]) -> Mapping[str, Any]:
    """A message of another store as it reads here; `new_ids` are the numbers that messages have here."""
    content, repeated = message.get("content"), message.get("copy_of")
    if message.get("is_summary") and isinstance(content, str) and (span := _RANGE.search(content)):
        meant = range(int(span[1]), int(span[2]) + 1)
    elif isinstance(repeated, int) and _is_cut_short(text_of(content)):
        meant = range(repeated, repeated + 1)
    else:
        return message
    return {**message, "content": _renumbered(content, lambda old: new_ids.get(old, old) if old in meant else old)}


def without_numbers(stored: Any, *, is_summary: bool) -> Any:
    """A stored text by which a message is known again, whichever store the numbers in it are of."""
    if isinstance(stored, str) and (is_summary or _is_cut_short(stored)):
        return _renumbered(stored, lambda _: 0)
    return stored


def _is_cut_short(text: str) -> bool:
    return TAKEN_OUT in text or IMAGE_TAKEN_OUT in text


def _renumbered(content: Any, number: Callable[[int], int]) -> Any:
    if isinstance(content, str):
        return _NAMED.sub(lambda named: _NUMBER.sub(lambda digits: str(number(int(digits[0]))), named[0]), content)
    if isinstance(content, list):
        return [_renumbered(part, number) for part in content]
    if isinstance(content, Mapping) and isinstance(content.get("text"), str):
        return {**content, "text": _renumbered(content["text"], number)}
    return content
