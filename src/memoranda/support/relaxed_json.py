"""Parses JSON as people write it in settings, and records the position of every value for edits.

Two dialects: `parse` reads JSON with comments and trailing commas, which is what hosts accept in their settings, and
nothing more, so that an edit never writes back what a host would reject. `parse_json5` also reads single quotes,
unquoted keys, hexadecimal and signed numbers, and strings over several lines.
"""

import json
import re
from typing import Any

from memoranda.support.lazy_dataclass import dataclass

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])|(?:true|false|null)\b")

_JSON5_SPACE = re.compile(r"(?:[\s\ufeff]++|//[^\n\r\u2028\u2029]*+|/\*.*?\*/)*+", re.DOTALL)
_JSON5_STRING = re.compile(
    r""""(?:[^"\\\n\r]++|\\(?:\r\n|.))*+"|'(?:[^'\\\n\r]++|\\(?:\r\n|.))*+'""",
    re.DOTALL,
)
_JSON5_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(\r\n|.))", re.DOTALL)
_JSON5_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_JSON5_NAME = re.compile(r"[\w$\u200c\u200d]+")
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_LINE_BREAKS = ("\n", "\r", "\r\n", "\u2028", "\u2029")
_MAX_INTEGER_DIGITS = 300

_BRACKETS = {"{": "}", "[": "]"}
_MAX_DEPTH = 200


class JsonTextError(ValueError):
    """A text is not JSON, not even with what the dialect allows; the message names the line."""


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object or an element of an array; `start` is the position of its key, or of its value."""

    start: int
    key: str | None
    node: "Node"
    comma: int | None
    """The position of the comma after it, if there is one."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its position in the text."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()

    def members(self) -> dict[str, Child]:
        """Return the members of an object by key; of two with the same key, the last."""
        return {child.key: child for child in self.children if child.key is not None}


def parse(text: str) -> Node:
    """Parse JSON with comments and trailing commas; raises JsonTextError."""
    return _Parser(text).document()


def parse_json5(text: str) -> Any:
    """Return the value of a JSON5 text; raises JsonTextError."""
    return parse_json5_node(text).value


def parse_json5_node(text: str) -> Node:
    """Parse JSON5 into nodes with positions, for edits in the text; raises JsonTextError."""
    return _Json5Parser(text).document()


class _Parser:
    """Parses JSON with comments and trailing commas; the JSON5 parser replaces its tokens."""

    space_pattern = _SPACE

    def __init__(self, text: str) -> None:
        self._text = text

    def document(self) -> Node:
        node = self._value(self._skip_space(0), 0)
        end = self._skip_space(node.end)
        if end < len(self._text):
            raise self._error(end, "nothing more was expected")
        return node

    def _string(self, position: int) -> Node | None:
        found = _STRING.match(self._text, position)
        return self._decode(found) if found else None

    def _scalar(self, position: int) -> Node | None:
        found = _SCALAR.match(self._text, position)
        return self._decode(found) if found else None

    def _key(self, position: int) -> Node:
        node = self._string(position)
        if node is None:
            raise self._error(position, "a name in quotation marks was expected")
        return node

    def _decode(self, found: re.Match[str]) -> Node:
        try:
            return Node(found.start(), found.end(), json.loads(found[0]))
        except ValueError as error:
            raise self._error(found.start(), str(error)) from error

    def _error(self, position: int, problem: str) -> JsonTextError:
        return JsonTextError(f"line {self._text.count(chr(10), 0, position) + 1}: {problem}")

    def _skip_space(self, position: int) -> int:
        """Return the position of the next character that is neither blank nor in a comment."""
        match = self.space_pattern.match(self._text, position)
        assert match is not None
        return match.end()

    def _value(self, position: int, depth: int) -> Node:
        character = self._text[position : position + 1]
        if character in _BRACKETS:
            if depth >= _MAX_DEPTH:
                raise self._error(position, "nested too deeply")
            return self._container(position, depth, _BRACKETS[character])
        node = self._string(position) or self._scalar(position)
        if node is None:
            raise self._error(position, "a value was expected")
        return node

    def _container(self, start: int, depth: int, closing: str) -> Node:
        children: list[Child] = []
        position = self._skip_space(start + 1)
        while self._text[position : position + 1] != closing:
            if children and children[-1].comma is None:
                raise self._error(position, f"',' or '{closing}' was expected")
            child = self._child(position, depth, keyed=closing == "}")
            children.append(child)
            position = self._skip_space(child.node.end if child.comma is None else child.comma + 1)
        value: Any = [child.node.value for child in children]
        if closing == "}":
            value = {child.key: child.node.value for child in children}
        return Node(start, position + 1, value, tuple(children))

    def _child(self, start: int, depth: int, *, keyed: bool) -> Child:
        key, position = None, start
        if keyed:
            name = self._key(start)
            key = name.value
            position = self._skip_space(name.end)
            if self._text[position : position + 1] != ":":
                raise self._error(position, "':' was expected")
            position = self._skip_space(position + 1)
        node = self._value(position, depth + 1)
        after = self._skip_space(node.end)
        return Child(start, key, node, after if self._text[after : after + 1] == "," else None)


class _Json5Parser(_Parser):
    """Reads the strings, numbers and keys of JSON5."""

    space_pattern = _JSON5_SPACE

    def _string(self, position: int) -> Node | None:
        found = _JSON5_STRING.match(self._text, position)
        if found is None:
            return None
        try:
            text = _JSON5_ESCAPE.sub(_unescape, found[0][1:-1])
        except ValueError as error:
            raise self._error(position, str(error)) from error
        if not text.isascii():
            # Characters beyond the first plane may be written as two escapes each.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return Node(position, found.end(), text)

    def _scalar(self, position: int) -> Node | None:
        if found := _JSON5_NUMBER.match(self._text, position):
            return Node(position, found.end(), _json5_number(found[0]))
        found = _JSON5_NAME.match(self._text, position)
        if found is None or found[0] not in _CONSTANTS:
            return None
        return Node(position, found.end(), _CONSTANTS[found[0]])

    def _key(self, position: int) -> Node:
        if node := self._string(position):
            return node
        found = _JSON5_NAME.match(self._text, position)
        if found is None:
            raise self._error(position, "a name was expected")
        return Node(position, found.end(), found[0])


def _unescape(escape: re.Match[str]) -> str:
    if digits := escape[1] or escape[2]:
        return chr(int(digits, 16))
    character = escape[3]
    if character in ("x", "u"):
        raise ValueError(f"the escape \\{character} needs {2 if character == 'x' else 4} hexadecimal digits")
    return "" if character in _LINE_BREAKS else _ESCAPED.get(character, character)


def _json5_number(text: str) -> int | float:
    digits = text.lstrip("+-")
    if digits[:2].lower() == "0x":
        return int(digits, 16) * (-1 if text[0] == "-" else 1)
    is_integer = digits.isdigit() and len(digits) < _MAX_INTEGER_DIGITS
    return int(text) if is_integer else float(text.replace("Infinity", "inf"))
