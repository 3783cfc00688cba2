"""JSON as people write it by hand (JSON5): comments, trailing commas, bare keys, single quotes, hexadecimal numbers."""

import re
from typing import Any, NoReturn

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)+", re.DOTALL)
_NAME = re.compile(r"[\w$\u200c\u200d]+")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_PLAIN = {'"': re.compile(r'[^"\\\n\r]+'), "'": re.compile(r"[^'\\\n\r]+")}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_HEX = {"x": 2, "u": 4}
_DEEPEST = 100


class Json5Error(ValueError):
    """A text that is no JSON5; the message says in which line."""


def parse_json5(text: str) -> Any:
    """The value that a text stands for."""
    parser = _Parser(text)
    value = parser.value(0)
    parser.blank()
    if parser.place < len(text):
        parser.fail("something follows the value")
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def fail(self, problem: str) -> NoReturn:
        line = self.text.count("\n", 0, self.place) + 1
        raise Json5Error(f"line {line}: {problem}")

    def blank(self) -> None:
        if found := _BLANK.match(self.text, self.place):
            self.place = found.end()

    def value(self, depth: int) -> Any:
        self.blank()
        sign = self.text[self.place : self.place + 1]
        if depth > _DEEPEST:
            self.fail("values lie too deep in one another")
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._array(depth)
        if sign and sign in "\"'":
            return self._string()
        if found := _NUMBER.match(self.text, self.place):
            self.place = found.end()
            return _number(found[0])
        if (found := _NAME.match(self.text, self.place)) and found[0] in _WORDS:
            self.place = found.end()
            return _WORDS[found[0]]
        self.fail("a value is missing")

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.place += 1
        while not self._closes("}"):
            key = self._key()
            self.blank()
            if self.text[self.place : self.place + 1] != ":":
                self.fail("a colon is missing")
            self.place += 1
            found[key] = self.value(depth + 1)
            self._separated("}")
        return found

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.place += 1
        while not self._closes("]"):
            found.append(self.value(depth + 1))
            self._separated("]")
        return found

    def _closes(self, sign: str) -> bool:
        self.blank()
        if self.text[self.place : self.place + 1] != sign:
            return False
        self.place += 1
        return True

    def _separated(self, closing: str) -> None:
        self.blank()
        sign = self.text[self.place : self.place + 1]
        if sign == ",":
            self.place += 1
        elif sign != closing:
            self.fail(f"a comma or {closing} is missing")

    def _key(self) -> str:
        if self.text[self.place : self.place + 1] in ('"', "'"):
            return self._string()
        found = _NAME.match(self.text, self.place)
        if found is None:
            self.fail("a key is missing")
        self.place = found.end()
        return found[0]

    def _string(self) -> str:
        quote = self.text[self.place]
        self.place += 1
        pieces: list[str] = []
        while True:
            if plain := _PLAIN[quote].match(self.text, self.place):
                pieces.append(plain[0])
                self.place = plain.end()
            sign = self.text[self.place : self.place + 1]
            if not sign or sign not in ("\\", quote):
                self.fail("a string does not end")
            self.place += 1
            if sign == quote:
                return _joined("".join(pieces))
            pieces.append(self._escape())

    def _escape(self) -> str:
        sign = self.text[self.place : self.place + 1]
        self.place += 1
        if sign in _HEX:
            digits = self.text[self.place : self.place + _HEX[sign]]
            if not re.fullmatch(r"[0-9a-fA-F]+", digits) or len(digits) < _HEX[sign]:
                self.fail("an escape is not finished")
            self.place += len(digits)
            return chr(int(digits, 16))
        if sign == "\r" and self.text[self.place : self.place + 1] == "\n":
            self.place += 1
        return "" if sign in ("\n", "\r", "\u2028", "\u2029") else _ESCAPES.get(sign, sign)


def _number(text: str) -> int | float:
    digits = text.lstrip("+-")
    if digits[:2].lower() == "0x":
        return int(digits, 16) * (-1 if text[0] == "-" else 1)
    return int(text) if digits.isdigit() and len(digits) < 300 else float(text.replace("Infinity", "inf"))


def _joined(text: str) -> str:
    """Text whose characters beyond the first plane were written as two escapes each."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
