"""JSON as people keep it in settings: with comments and trailing commas, read together with where everything stands."""

import json
import re
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])|(?:true|false|null)\b")
_BRACKETS = {"{": "}", "[": "]"}
_DEEPEST = 200


class JsonTextError(ValueError):
    """A text is no JSON, comments and trailing commas allowed for."""


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object or an element of an array: where it begins (with its key), and its value."""

    start: int
    key: str | None
    node: "Node"
    comma: int | None
    """Where the comma behind it stands, if there is one."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands in its text."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()

    def members(self) -> dict[str, Child]:
        """The members of an object by key; of two with the same key, the one that counts."""
        return {child.key: child for child in self.children if child.key is not None}


def parse(text: str) -> Node:
    """Read a whole text; raises JsonTextError with the line where it cannot be read."""
    reader = _Reader(text)
    node = reader.value(reader.space(0), 0)
    end = reader.space(node.end)
    if end < len(text):
        raise reader.error(end, "nothing more was expected")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def error(self, place: int, words: str) -> JsonTextError:
        return JsonTextError(f"line {self._text.count(chr(10), 0, place) + 1}: {words}")

    def space(self, place: int) -> int:
        """Where the next thing stands that is neither blank nor a comment."""
        match = _SPACE.match(self._text, place)
        assert match is not None
        return match.end()

    def value(self, place: int, depth: int) -> Node:
        sign = self._text[place : place + 1]
        if sign in _BRACKETS:
            if depth >= _DEEPEST:
                raise self.error(place, "nested too deeply")
            return self._container(place, depth, _BRACKETS[sign])
        found = _STRING.match(self._text, place) or _SCALAR.match(self._text, place)
        if found is None:
            raise self.error(place, "a value was expected")
        return Node(place, found.end(), self._scalar(found))

    def _scalar(self, found: re.Match[str]) -> Any:
        try:
            return json.loads(found[0])
        except ValueError as error:
            raise self.error(found.start(), str(error)) from error

    def _container(self, start: int, depth: int, closing: str) -> Node:
        children: list[Child] = []
        place = self.space(start + 1)
        while self._text[place : place + 1] != closing:
            if children and children[-1].comma is None:
                raise self.error(place, f"',' or '{closing}' was expected")
            child = self._child(place, depth, keyed=closing == "}")
            children.append(child)
            place = self.space(child.node.end if child.comma is None else child.comma + 1)
        value: Any = [child.node.value for child in children]
        if closing == "}":
            value = {child.key: child.node.value for child in children}
        return Node(start, place + 1, value, tuple(children))

    def _child(self, start: int, depth: int, *, keyed: bool) -> Child:
        key, place = None, start
        if keyed:
            found = _STRING.match(self._text, start)
            if found is None:
                raise self.error(start, "a name in quotation marks was expected")
            key = self._scalar(found)
            place = self.space(found.end())
            if self._text[place : place + 1] != ":":
                raise self.error(place, "':' was expected")
            place = self.space(place + 1)
        node = self.value(place, depth + 1)
        after = self.space(node.end)
        return Child(start, key, node, after if self._text[after : after + 1] == "," else None)
