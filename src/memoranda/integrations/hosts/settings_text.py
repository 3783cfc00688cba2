"""The text of a settings file in each of the formats that hosts use: reading its values, and editing them in place.

A JSON text is changed by small edits, so that unchanged parts keep their bytes and comments. Each round makes one edit
and parses the text again, so that every edit starts from valid text, and the last round proves the result.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from memoranda.integrations.hosts.host import Settings, SettingsFile
from memoranda.integrations.hosts.settings_change import BLANK, read_settings
from memoranda.support.relaxed_json import Child, JsonTextError, Node, parse, parse_json5_node

_MAX_EDITS = 200
_BLANK = " \t\r\n"
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_DEFAULT_UNIT = "  "


def read_values(file: SettingsFile) -> Settings:
    """Returns the settings in a file; an empty map when it does not exist."""
    return _parse(file, (read_settings(file.path) or b"").decode())


def edit_text(file: SettingsFile, text: str, edit: Callable[[Settings], Settings]) -> str:
    """Returns the text with the settings that `edit` makes of the current ones; the rest keeps its bytes."""
    wanted = edit(_parse(file, text))
    # The libraries for TOML and YAML are loaded for the hosts that use them.
    if file.language == "toml":
        from memoranda.integrations.hosts.toml_edit import rewrite_toml  # noqa: PLC0415

        return rewrite_toml(text, wanted, *file.table)
    if file.language == "yaml":
        from memoranda.integrations.hosts.yaml_edit import rewrite_yaml  # noqa: PLC0415

        return rewrite_yaml(text, wanted, *file.table)
    if not text.strip(BLANK) and not wanted:
        return text
    return rewrite_json(text, wanted, parse_json5_node if file.language == "json5" else parse)


def _parse(file: SettingsFile, text: str) -> Settings:
    if file.language == "toml":
        from memoranda.integrations.hosts.toml_edit import read_toml  # noqa: PLC0415

        return read_toml(text)
    if file.language == "yaml":
        from memoranda.integrations.hosts.yaml_edit import read_yaml  # noqa: PLC0415

        return read_yaml(text)
    if not text.strip(BLANK):
        return {}
    settings = (parse_json5_node if file.language == "json5" else parse)(text).value
    if not isinstance(settings, dict):
        raise JsonTextError(f"settings are expected, not {type(settings).__name__}")
    return settings


def rewrite_json(text: str, wanted: dict[str, Any], parse: Callable[[str], Node] = parse) -> str:
    """Returns the text edited to have the `wanted` value; raises JsonTextError when that takes too many edits.

    `parse` decides the dialect; what is added is plain JSON, which every dialect contains.
    """
    if not text.strip("\ufeff" + _BLANK):
        return json.dumps(wanted, indent=_DEFAULT_UNIT, ensure_ascii=False) + "\n"
    for _ in range(_MAX_EDITS):
        root = parse(text)
        edited = _TextEdit(text, root).change(root, wanted)
        if edited is None:
            return text
        text = edited
    raise JsonTextError("it differs in too many places from the settings that are wanted")


class _TextEdit:
    """One edit of one text. Its methods return the text after the edit."""

    def __init__(self, text: str, root: Node) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._unit = self._indent_of(root.children[0].start) or _DEFAULT_UNIT if root.children else _DEFAULT_UNIT

    def change(self, node: Node, wanted: Any) -> str | None:
        """Makes the first edit that brings a node closer to its wanted value; None when it has that value."""
        if _same(node.value, wanted):
            return None
        if isinstance(node.value, dict) and isinstance(wanted, dict):
            return self._change_object(node, wanted)
        if isinstance(node.value, list) and isinstance(wanted, list):
            return self._change_array(node, wanted)
        replacement = self._render(wanted, self._line_indent(node.start))
        return self._text[: node.start] + replacement + self._text[node.end :]

    def _change_object(self, node: Node, wanted: dict[str, Any]) -> str | None:
        members = node.members()
        for key, child in members.items():
            if key not in wanted:
                return self._remove(node, child)
            if not _same(child.node.value, wanted[key]):
                return self.change(child.node, wanted[key])
        missing = next(key for key in wanted if key not in members)
        return self._add(node, missing, wanted[missing])

    def _change_array(self, node: Node, wanted: list[Any]) -> str | None:
        children, index = node.children, 0
        while index < min(len(children), len(wanted)) and _same(children[index].node.value, wanted[index]):
            index += 1
        if index == len(children):
            return self._add(node, None, wanted[index])
        rest = [child.node.value for child in children[index + 1 :]]
        if index == len(wanted) or _starts_with(rest, wanted[index:]):
            return self._remove(node, children[index])
        return self.change(children[index].node, wanted[index])

    def _add(self, node: Node, key: str | None, value: Any) -> str:
        """Adds a value at the end of an object or array, laid out like the values before it."""
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        last = node.children[-1] if node.children else None
        comma = "," if last is not None and last.comma is not None else ""
        inside = self._text[node.start + 1 : node.end - 1]
        if last is not None and "\n" not in inside:
            body, end = f" {name}{json.dumps(value, ensure_ascii=False)}{comma}", node.end - 1
            end -= len(inside) - len(inside.rstrip(_BLANK))
        else:
            outer = self._line_indent(node.start)
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

    def _remove(self, node: Node, child: Child) -> str:
        """Removes a value with the blanks before it and the comma that it needed."""
        index = node.children.index(child)
        start = len(self._text[: child.start].rstrip(_BLANK))
        end = child.node.end if child.comma is None else child.comma + 1
        if len(node.children) == 1 and not self._text[end : node.end - 1].strip(_BLANK):
            end = node.end - 1 if self._text[node.start + 1 : start].strip(_BLANK) == "" else end
        if self._must_keep_line_end(node, index, start, end):
            start = self._text.index("\n", start) + 1
        before = self._text[:start]
        if child.comma is None and index:
            # The value before it becomes the last one, which needs no comma.
            comma = node.children[index - 1].comma
            assert comma is not None
            before = self._text[:comma] + self._text[comma + 1 : start]
        return before + self._text[end:]

    def _must_keep_line_end(self, node: Node, index: int, start: int, end: int) -> bool:
        """Whether a line comment before the removed value needs the line end that would be removed with it."""
        previous_end = node.children[index - 1].node.end if index else node.start + 1
        comments = list(_COMMENT.finditer(self._text[previous_end : node.children[index].start]))
        if not comments or not comments[-1][0].startswith("//") or previous_end + comments[-1].end() < start:
            return False
        rest = self._text[end:]
        return "\n" not in rest[: len(rest) - len(rest.lstrip(_BLANK))]

    def _render(self, value: Any, indent: str) -> str:
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return f"{self._newline}{indent}".join(lines)

    def _indent_of(self, position: int) -> str | None:
        """Returns the blanks before a value that is first on its line; None when it is not."""
        line = self._text[self._text.rfind("\n", 0, position) + 1 : position]
        return line if not line.strip(" \t") and "\n" in self._text[:position] else None

    def _line_indent(self, position: int) -> str:
        """Returns the blanks at the beginning of the line of a value."""
        line = self._text[self._text.rfind("\n", 0, position) + 1 : position]
        return line[: len(line) - len(line.lstrip(" \t"))]


def _starts_with(values: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the wanted values follow right after the current one: then removing that one is enough."""
    return bool(wanted) and len(values) >= len(wanted) and _same(list(values[: len(wanted)]), list(wanted))


def _same(one: Any, other: Any) -> bool:
    """Compares as JSON does, where true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
