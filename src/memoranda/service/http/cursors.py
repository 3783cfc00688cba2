"""Cursors: where a list continues, as an opaque text. A cursor never widens what a caller may see."""

import base64
import binascii
import json
from typing import Any

from memoranda.service.http.problems import Problem

_MAX_CHARS = 1_000


def write_cursor(kind: str, *values: Any) -> str:
    """A cursor of one kind of list; clients only pass it back."""
    raw = json.dumps([kind, *values], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def read_cursor(text: str, kind: str, types: tuple[type, ...]) -> tuple[Any, ...]:
    """The values of a cursor; raises Problem 422 if it is not one of this kind."""
    wrong = Problem(422, "wrong_cursor", "The cursor is not one that this list returned.")
    if len(text) > _MAX_CHARS:
        raise wrong
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise wrong from None
    if not isinstance(values, list) or len(values) != len(types) + 1 or values[0] != kind:
        raise wrong
    for value, expected in zip(values[1:], types, strict=True):
        if not isinstance(value, expected) or isinstance(value, bool):
            raise wrong
    return tuple(values[1:])
