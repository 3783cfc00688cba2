"""The elements of one large JSON list, read one at a time.

An export is a single list with every conversation in it, often on one line, and may have gigabytes. Only the element
that is being read is held. One that is broken is named and stepped over by its brackets, so that it costs no other.
"""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from memoranda.importers.reader_protocol import Problem

# The largest element that is taken, in characters; a conversation of years has a tenth of it.
LARGEST = 128 * 1024 * 1024
_CHUNK = 1024 * 1024
# An error this close to the end of what was read may only mean that more has to be read.
_NEAR_END = 64
_BLANK = re.compile(r"[ \t\r\n]*")
_SIGN = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_WRAPPERS = ("conversations", "chats", "data")


@dataclass(frozen=True, slots=True)
class ArrayElement:
    """One element of the list: its place in it, counted from one, and the line on which it begins."""

    value: Any
    number: int
    line: int


def read_elements(stream: IO[bytes], file: Path) -> Iterator[ArrayElement | Problem]:
    """Every element of the list that a stream holds; a single object is a list of one, or the list is in it."""
    text = _Text(stream)
    first = text.next_character()
    if first == "[":
        text.advance(text.at + 1)
        yield from _members(text, file)
    elif first == "{":
        yield from _single(text, file)
    else:
        yield Problem(file, text.line, "not a JSON list" if first else "the file is empty")


def _single(text: "_Text", file: Path) -> Iterator[ArrayElement | Problem]:
    line = text.line
    value = text.value()
    if isinstance(value, _Broken):
        yield Problem(file, line, f"not JSON ({value.why})")
        return
    inner = next((value[name] for name in _WRAPPERS if isinstance(value.get(name), list)), [value])
    for number, each in enumerate(inner, start=1):
        yield ArrayElement(each, number, line)
    yield from _rest(text, file)


def _members(text: "_Text", file: Path) -> Iterator[ArrayElement | Problem]:
    number = 0
    while (character := text.next_character()) != "]":
        if not character:
            yield Problem(file, text.line, f"the file is cut off after element {number} of the list")
            return
        if character == ",":
            text.advance(text.at + 1)
            continue
        number += 1
        line = text.line
        value = text.value()
        if isinstance(value, _Broken):
            yield Problem(file, line, f"element {number} of the list {value.why}")
        else:
            yield ArrayElement(value, number, line)
    text.advance(text.at + 1)
    yield from _rest(text, file)


def _rest(text: "_Text", file: Path) -> Iterator[Problem]:
    if text.next_character():
        yield Problem(file, text.line, "what follows the end of the JSON was not read")


@dataclass(frozen=True, slots=True)
class _Broken:
    why: str


class _Text:
    """A stream as text, of which only what is needed is held."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        # Bytes that are no UTF-8 come through as half characters, which the record can keep.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text = ""
        self._ended = False
        self.at = 0
        self.line = 1

    def advance(self, to: int) -> None:
        self.line += self._text.count("\n", self.at, to)
        self.at = to

    def next_character(self) -> str:
        """The next character that is no blank; nothing at the end."""
        while True:
            found = _BLANK.match(self._text, self.at)
            self.advance(found.end() if found else self.at)
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._more(_CHUNK):
                return ""

    def value(self) -> Any:
        """The value that begins here, or why there is none; either way what comes next is behind it."""
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self.at)
            except (ValueError, RecursionError) as error:
                if not self._may_be_cut(error):
                    return self._step_over(_Broken(f"is not JSON ({str(error)[:100]})"))
            else:
                if isinstance(value, dict | list | str) or end < len(self._text) or self._ended:
                    self.advance(end)
                    return value
            if len(self._text) - self.at > LARGEST:
                return self._step_over(_Broken(f"has more than {LARGEST // 1024 // 1024} MB"))
            # Twice as much each time, so that a large element is not tried too often.
            if not self._more(max(_CHUNK, len(self._text) - self.at)):
                self._ended = True

    def _may_be_cut(self, error: Exception) -> bool:
        if self._ended or not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _NEAR_END

    def _more(self, size: int) -> bool:
        """Read on, and let go of what is behind; False when there is no more."""
        raw = self._stream.read(size)
        more = self._decoder.decode(raw, final=not raw)
        self._text = self._text[self.at :] + more
        self.at = 0
        return bool(raw) or bool(more)

    def _step_over(self, broken: _Broken) -> _Broken:
        """Go behind a value that cannot be read, by its brackets and strings alone."""
        depth = 0
        while sign := self._find(_SIGN, search=True):
            if depth == 0 and sign in ("]", ","):
                # It was no object, and this is where the list ends or goes on.
                return broken
            self.advance(self.at + 1)
            if sign == '"':
                if not self._find(_IN_STRING, search=False):
                    break
            elif sign != ",":
                depth += 1 if sign in "[{" else -1
                if depth <= 0:
                    return broken
        return _Broken(f"{broken.why}; nothing after it could be read")

    def _find(self, pattern: re.Pattern[str], *, search: bool) -> str:
        """Go to the next sign (`search`) or behind the next end of a string; what was found there."""
        while True:
            found = (pattern.search if search else pattern.match)(self._text, self.at)
            if found:
                self.advance(found.start() if search else found.end())
                return found[0]
            if search:
                self.advance(len(self._text))
            if len(self._text) - self.at > LARGEST or not self._more(max(_CHUNK, len(self._text) - self.at)):
                return ""
