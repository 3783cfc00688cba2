"""Brings a JSON text to another value by the smallest edits: whatever stays the same keeps its bytes and its comments.

One difference is mended at a time and the text read again, so that every edit is made to a text that is known to be
whole, and the last reading proves the result.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from memoranda.support.relaxed_json import Child, JsonTextError, Node, parse

_MOST_EDITS = 200
_BLANK = " \t\r\n"
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_DEFAULT_UNIT = "  "


def rewrite(text: str, wanted: dict[str, Any]) -> str:
    """The text with the value that is wanted; raises JsonTextError when it cannot be brought to it."""
    if not text.strip("\ufeff" + _BLANK):
        return json.dumps(wanted, indent=_DEFAULT_UNIT, ensure_ascii=False) + "\n"
    for _ in range(_MOST_EDITS):
        root = parse(text)
        changed = _Editing(text, root).towards(root, wanted)
        if changed is None:
            return text
        text = changed
    raise JsonTextError("too much differs")


class _Editing:
    """One edit of one text; the answer is the text after it, or None when there is nothing to do."""

    def __init__(self, text: str, root: Node) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._unit = self._indent_of(root.children[0].start) or _DEFAULT_UNIT if root.children else _DEFAULT_UNIT

    def towards(self, node: Node, wanted: Any) -> str | None:
        if _same(node.value, wanted):
            return None
        if isinstance(node.value, dict) and isinstance(wanted, dict):
            return self._object(node, wanted)
        if isinstance(node.value, list) and isinstance(wanted, list):
            return self._array(node, wanted)
        return self._replaced(node, wanted)

    def _object(self, node: Node, wanted: dict[str, Any]) -> str | None:
        members = node.members()
        for key, child in members.items():
            if key not in wanted:
                return self._without(node, child)
            if not _same(child.node.value, wanted[key]):
                return self.towards(child.node, wanted[key])
        missing = next(key for key in wanted if key not in members)
        return self._with(node, missing, wanted[missing])

    def _array(self, node: Node, wanted: list[Any]) -> str | None:
        there, place = node.children, 0
        while place < min(len(there), len(wanted)) and _same(there[place].node.value, wanted[place]):
            place += 1
        if place == len(there):
            return self._with(node, None, wanted[place])
        rest = [child.node.value for child in there[place + 1 :]]
        if place == len(wanted) or _begins_with(rest, wanted[place:]):
            return self._without(node, there[place])
        return self.towards(there[place].node, wanted[place])

    def _replaced(self, node: Node, value: Any) -> str:
        return self._text[: node.start] + self._render(value, self._indent(node.start)) + self._text[node.end :]

    def _with(self, node: Node, key: str | None, value: Any) -> str:
        """Add something at the end of an object or array, in the way in which the others stand there."""
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        last = node.children[-1] if node.children else None
        comma = "," if last is not None and last.comma is not None else ""
        inside = self._text[node.start + 1 : node.end - 1]
        if last is not None and "\n" not in inside:
            body, end = f" {name}{json.dumps(value, ensure_ascii=False)}{comma}", node.end - 1
            end -= len(inside) - len(inside.rstrip(_BLANK))
        else:
            outer = self._indent(node.start)
            indent = (self._indent_of(last.start) if last else None) or outer + self._unit
            body, end = f"{self._newline}{indent}{name}{self._render(value, indent)}{comma}", node.end - 1
            if inside.strip(_BLANK):
                end -= len(inside) - len(inside.rstrip(_BLANK))
            else:
                body, end = f"{body}{self._newline}{outer}", node.start + 1
                return self._text[:end] + body + self._text[node.end - 1 :]
        if last is not None and not comma:
            return self._text[: last.node.end] + "," + self._text[last.node.end : end] + body + self._text[end:]
        return self._text[:end] + body + self._text[end:]

    def _without(self, node: Node, child: Child) -> str:
        """Take something out, with the blanks before it and the comma that it needed."""
        place = node.children.index(child)
        start = len(self._text[: child.start].rstrip(_BLANK))
        end = child.node.end if child.comma is None else child.comma + 1
        if len(node.children) == 1 and not self._text[end : node.end - 1].strip(_BLANK):
            end = node.end - 1 if self._text[node.start + 1 : start].strip(_BLANK) == "" else end
        if self._needs_line(node, place, start, end):
            start = self._text.index("\n", start) + 1
        before = self._text[:start]
        if child.comma is None and place:
            # It was the last, so that the one before it is now, and needs no comma.
            comma = node.children[place - 1].comma
            assert comma is not None
            before = self._text[:comma] + self._text[comma + 1 : start]
        return before + self._text[end:]

    def _needs_line(self, node: Node, place: int, start: int, end: int) -> bool:
        """Whether the line must still end where something is taken out, because a comment before it does."""
        since = node.children[place - 1].node.end if place else node.start + 1
        comments = list(_COMMENT.finditer(self._text[since : node.children[place].start]))
        if not comments or not comments[-1][0].startswith("//") or since + comments[-1].end() < start:
            return False
        rest = self._text[end:]
        return "\n" not in rest[: len(rest) - len(rest.lstrip(_BLANK))]

    def _render(self, value: Any, indent: str) -> str:
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return f"{self._newline}{indent}".join(lines)

    def _indent_of(self, place: int) -> str | None:
        """The blanks before something that begins its line; None when it does not."""
        line = self._text[self._text.rfind("\n", 0, place) + 1 : place]
        return line if not line.strip(" \t") and "\n" in self._text[:place] else None

    def _indent(self, place: int) -> str:
        """The blanks at the beginning of the line on which something stands."""
        line = self._text[self._text.rfind("\n", 0, place) + 1 : place]
        return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_with(values: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether what is wanted comes right after what is there: then only that has to go."""
    return bool(wanted) and len(values) >= len(wanted) and _same(list(values[: len(wanted)]), list(wanted))


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, which tells true from 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
