"""Translates statements and values between the store and PostgreSQL, where the two differ.

PostgreSQL's text cannot contain a NUL or half of a surrogate pair. Both are escaped on the way in and restored on the
way out, one to one, so that equal texts stay equal and different texts stay different.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

# A control character that text hardly ever contains, so that few texts must be changed.
_ESCAPE = "\x1a"
_UNSTORABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a(0|1|d[89a-f][0-9a-f]{2})")
_QUOTED_OR_MARK = re.compile(r"'(?:[^']|'')*'|\?")
_CAST = re.compile(r"\bAS INTEGER\)", re.IGNORECASE)


@lru_cache(4096)
def translate(statement: str) -> str:
    """The statement with `$1`, `$2` … for `?`, and with whole numbers of 64 bits."""
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] != "?":
            return found[0]
        count += 1
        return f"${count}"

    return _CAST.sub("AS BIGINT)", _QUOTED_OR_MARK.sub(number, statement))


def stored_values(values: Iterable[Any]) -> list[Any]:
    """Values as PostgreSQL stores them."""
    return [
        escape(value)
        if value.__class__ is str and ("\0" in value or _ESCAPE in value)
        else int(value)
        if value.__class__ is bool
        else [escape(item) if isinstance(item, str) else item for item in value]
        if value.__class__ is list
        else value
        for value in values
    ]


def escaped_values(values: Iterable[Any]) -> list[Any]:
    """The same with half surrogate pairs escaped, for the few texts that have some."""
    return [escape(value) if isinstance(value, str) else stored_values([value])[0] for value in values]


def escape(text: str) -> str:
    return _UNSTORABLE.sub(_as_code, text)


def _as_code(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\0":
        return f"{_ESCAPE}0"
    return f"{_ESCAPE}1" if character == _ESCAPE else f"{_ESCAPE}{ord(character):04x}"


def restore(text: str) -> str:
    return _ESCAPED.sub(_as_character, text)


def _as_character(found: re.Match[str]) -> str:
    code = found[1]
    return "\0" if code == "0" else _ESCAPE if code == "1" else chr(int(code, 16))


def restored_row(row: Any) -> Any:
    """A row as it was stored."""
    for value in row:
        if value.__class__ is str and _ESCAPE in value:
            return tuple([restore(item) if item.__class__ is str and _ESCAPE in item else item for item in row])
    return row


def restored_rows(rows: Sequence[Any]) -> list[Any]:
    return [restored_row(row) for row in rows]
