"""JSON between bytes and values: strict when reading what a client sent, lossless when writing an answer."""

import json
import re
from collections import Counter
from typing import Any, NoReturn

from memoranda.service.http.problems import Problem

MAX_DEPTH = 64
_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_BRACKET = re.compile(r"[][{}]")


def read_json(raw: bytes) -> Any:
    """Parse a body; raises Problem 400 for what two programs may read differently: duplicate names, NaN, huge numbers.

    Half of a surrogate pair, written as an escape, is accepted: the record stores what people paste.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, "not_json", f"The body is not UTF-8: {error.reason} at byte {error.start}.") from None
    _refuse_deep(text)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise Problem(400, "not_json", f"The body is not JSON: {error}.") from None


def write_json(value: Any) -> bytes:
    """An answer as UTF-8; halves of surrogate pairs, which UTF-8 cannot encode, are written as escapes."""
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(value).encode()


def _refuse_deep(text: str) -> None:
    """Refuse deep nesting before the parser recurses."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise Problem(400, "not_json", f"The body is nested deeper than {MAX_DEPTH} levels.")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {repeated[:60]!r} is repeated in an object")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


# json.loads and json.dumps would create these for every call.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique_names, parse_constant=_refuse_constant, parse_float=_read_float)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ASCII_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)
