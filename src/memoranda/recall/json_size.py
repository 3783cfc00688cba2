"""How large an answer is as JSON, and text cut to the room there is for it."""

import json
import re
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

from memoranda.support.shorten import shorten_end, shorten_for_json

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_CONTROL = {number: " " for number in (*range(32), *range(0x7F, 0xA0))}
_LONGEST_REPETITION = 100

_encode = json.JSONEncoder(ensure_ascii=False).encode


def size_of(value: Any) -> int:
    """How many characters a value takes as JSON."""
    return len(encode_basestring(value)) if isinstance(value, str) else len(_encode(value))


def replace_surrogates(text: str) -> str:
    """A text that can be stored and sent: half a character becomes a sign that something was there."""
    return text if text.isascii() else _HALF_CHARACTER.sub("\ufffd", text)


def echo_input(text: str, most: int = _LONGEST_REPETITION) -> str:
    """Something that was typed, or a name from elsewhere, as an answer repeats it: short, and on one line.

    Each of its characters takes at most two in JSON.
    """
    return shorten_end(replace_surrogates(text[: most + 1]).translate(_CONTROL).strip(), most)


def fit_json(text: str, room: int) -> str:
    """As much of a text as its JSON has room for."""
    return shorten_for_json(replace_surrogates(text[: max(0, room)]), room)


def echo_list(texts: Iterable[str], room: int) -> list[str]:
    """The first of some texts, as many as there is room for as a list; each as an answer repeats it."""
    shown: list[str] = []
    for text in texts:
        short = echo_input(text, min(_LONGEST_REPETITION, room // 2 - 4))
        room -= size_of(short) + 2
        if room < 0:
            break
        shown.append(short)
    return shown
