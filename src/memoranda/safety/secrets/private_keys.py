"""Finds private keys in text, from their first line to their last.

A key can be written in many ways: as in its file, indented, quoted, with line numbers, in a JSON string whose line
breaks are escapes, or with its beginning or end missing. Public keys and certificates are not secret and stay.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from itertools import zip_longest

# Every text with a private key contains one of them; the second and third are long enough to be found as runs.
KEY_MARK, PUTTY_MARK, ENCODED_MARK = "PRIVATE KEY", "PuTTY-User-Key-File-", "LS0tLS1CRUdJTi"

_MARKER = re.compile(
    r"-{4,5} ?(?P<edge>BEGIN|END) (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-Lines: \d{1,3}"
)
# What may be between two lines of a key: breaks (also as escapes), indents, quotes, marks of a quotation or a
# diff, numbers. The expression never backtracks (`}+`), so that no text takes long.
_BETWEEN = r"(?:[\s\"'`>|│→#*,;:+\\]|(?<=\\)[nrt]|(?<=[\r\n])-|\d(?=\d{0,5} ?[\t:|│→ ])){0,120}+"
_BREAK = re.compile(r"[\r\n]|\\[rn]")
_SIGN = r"(?:[A-Za-z0-9+/]|\\{1,4}/)"
_SIGNS = rf"{_SIGN}{{24,}}+={{0,2}}"
_LINE = re.compile(rf"{_BETWEEN}{_SIGNS}")
# Not from the middle of an escape on, because the beginning of the escape would be left over.
_NOT_ESCAPED = r"(?<!\\)(?<!\\u)(?<!\\u\w)(?<!\\u\w\w)(?<!\\u\w\w\w)"
_LONG_LINE = re.compile(rf"{_NOT_ESCAPED}{_SIGNS}")
_HEADER = re.compile(
    rf"{_BETWEEN}[A-Z][A-Za-z-]{{2,20}}: (?:[^\r\n\\]|\\{{1,3}}\"){{1,120}}?(?=\s{{0,3}}(?:[\r\n\\]|{_SIGN}{{40}}|$))"
)
# The last line of a key, or its checksum: short, but neither word nor number.
_SHORT_LINE = rf"(?!(?:[A-Z]?[a-z]+|\d+)(?![\w+/=]))=?{_SIGN}{{1,23}}+={{0,2}}"
_LAST_LINE = re.compile(rf"{_BETWEEN}(?P<line>{_SHORT_LINE})(?=[ \t]{{0,9}}(?:[\r\n\"'`\\…\[(<=]|\.\.|$))")
_TO_THE_END = re.compile(rf"{_BETWEEN}(?:{_SHORT_LINE}{_BETWEEN}){{0,2}}")
_ENCODED = re.compile(rf"(?:\b|(?<=\\[nrt])){ENCODED_MARK}[A-Za-z0-9+/]{{24,}}+={{0,2}}")
# How much of the text between the marks, without spaces, must be key for all of it to count as one.
_DENSE = 0.5


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """The spans of private keys in a text."""
    markers = list(_MARKER.finditer(text))
    done = 0
    for marker, following in zip_longest(markers, markers[1:]):
        if marker.start() < done:
            continue
        limit = following.start() if following else len(text)
        start, end = marker.span()
        if marker["edge"] == "END":
            start = _first_line_before(text, done, start)
        elif following and following["edge"] == "END" and _is_key(text[end:limit]):
            end = following.end()
        else:
            end = _last_line_after(text, end, limit)
        # A first line without a key is reported too: what follows it may be in a form that is not known here.
        if marker["edge"] == "BEGIN" or (start, end) != marker.span():
            yield start, end
        done = end
    for encoded in _ENCODED.finditer(text):
        if _hides_private_key(encoded[0]):
            yield encoded.span()


def _is_key(between: str) -> bool:
    """Whether the text between a first and a last line is a key, and not prose or code about keys."""
    solid = re.sub(r"\s|\\|(?<=\\)[nrt]", "", between)
    if re.fullmatch(r"[A-Za-z0-9+/]{4,}+={0,3}[A-Za-z0-9+/]*+", solid):
        return True
    return sum(len(line[0]) for line in _LONG_LINE.finditer(between)) >= _DENSE * len(solid) > 0


def _last_line_after(text: str, position: int, limit: int) -> int:
    """The end of the key lines that begin at a position; the position itself if there are none."""
    end = before = position
    while header := _HEADER.match(text, position, limit):
        position = header.end()
    while line := _LINE.match(text, position, limit):
        end = position = line.end()
    for _ in range(2):
        last = _LAST_LINE.match(text, position, limit)
        if last and (end > before or _BREAK.search(text, position, last.start("line"))):
            end = position = last.end()
    return end


def _first_line_before(text: str, position: int, limit: int) -> int:
    """The start of the key lines that end at a limit; the limit itself if there are none."""
    start = limit
    for line in reversed(list(_LONG_LINE.finditer(text, position, limit))):
        if not _TO_THE_END.fullmatch(text, line.end(), start):
            break
        start = line.start()
    return start


def _hides_private_key(encoded: str) -> bool:
    """Whether base64 text encodes the first line of a private key, as Kubernetes stores it."""
    try:
        return KEY_MARK.encode() in b64decode(encoded[:64] + "=" * (-len(encoded[:64]) % 4))
    except binascii.Error:
        return False
