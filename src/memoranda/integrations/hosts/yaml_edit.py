"""Changes one setting of a YAML text, `section.key`; everything else keeps its bytes, comments included.

The position comes from the parser, and the edit is made in the text. Every result is parsed again: if its value is not
the wanted one, the edit is refused.
"""

from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from memoranda.integrations.hosts.host import UnusableSettingsError

_INDENT = "  "


def read_yaml(text: str) -> dict[str, Any]:
    """Returns the settings in a text; none when it is empty or has only comments."""
    try:
        settings = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, TypeError, RecursionError) as error:
        raise UnusableSettingsError(f"it is not valid YAML: {error}") from error
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise UnusableSettingsError(f"settings are expected, not {type(settings).__name__}")
    return settings


def rewrite_yaml(text: str, wanted: Mapping[str, Any], section: str, key: str) -> str:
    """Returns the text edited to have the `wanted` value, which may differ only in `section.key`, a word."""
    if read_yaml(text) == wanted:
        return text
    values = wanted.get(section)
    value = values.get(key) if isinstance(values, Mapping) else None
    edited = _remove(text, section, key) if value is None else _set(text, section, key, str(value))
    if _without_empty(read_yaml(edited), section) != _without_empty(wanted, section):
        raise UnusableSettingsError(f"{section}.{key} cannot be changed without changing something else")
    return edited


def _without_empty(settings: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Returns the settings without an empty section: `memory: {}` means the same as no section."""
    return {name: value for name, value in settings.items() if name != section or value}


def _set(text: str, section: str, key: str, value: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    parent = _find(_root(text), section)
    if parent is None:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{section}:{newline}{_INDENT}{key}: {value}{newline}"
    _, node = parent
    if isinstance(node, ScalarNode) and str(node.tag).endswith(":null"):
        # A section without settings, `memory:` or `memory: null`; a comment behind it stays.
        without_value = _before(text, node) + _after(text, node)
        end = without_value.find("\n", parent[0].end_mark.index)
        line = f"{_INDENT}{key}: {value}{newline}"
        if end < 0:
            return f"{without_value}{newline}{line}"
        return f"{without_value[: end + 1]}{line}{without_value[end + 1 :]}"
    if not isinstance(node, MappingNode):
        raise UnusableSettingsError(f"{section} is not a map")
    if child := _find(node, key):
        return f"{_before(text, child[1])}{value}{_after(text, child[1])}"
    if node.flow_style:
        rest = text[node.start_mark.index + 1 :]
        separator = ", " if node.value else ""
        return f"{text[: node.start_mark.index + 1]}{key}: {value}{separator}{rest}"
    start = node.value[0][0].start_mark
    return f"{text[: start.index]}{key}: {value}{newline}{' ' * start.column}{text[start.index :]}"


def _remove(text: str, section: str, key: str) -> str:
    parent = _find(_root(text), section)
    node = parent[1] if parent else None
    child = _find(node, key)
    if parent is None or child is None or not isinstance(node, MappingNode):
        return text
    index = node.value.index(child)
    if node.flow_style:
        # Up to the next setting, or from the previous one on.
        start, end = child[0].start_mark.index, child[1].end_mark.index
        if index + 1 < len(node.value):
            end = node.value[index + 1][0].start_mark.index
        elif index:
            start = node.value[index - 1][1].end_mark.index
        return text[:start] + text[end:]
    # With its section when nothing else is in it.
    first = parent[0] if len(node.value) == 1 else child[0]
    start = text.rfind("\n", 0, first.start_mark.index) + 1
    end = text.find("\n", child[1].end_mark.index) + 1
    return text[:start] + (text[end:] if end else "")


def _root(text: str) -> Node | None:
    try:
        root: Node | None = YAML(pure=True).compose(text)
    except (YAMLError, ValueError, TypeError, RecursionError) as error:
        raise UnusableSettingsError(f"it is not valid YAML: {error}") from error
    return root


def _find(node: Node | None, name: str) -> tuple[Node, Node] | None:
    """Returns the key and the value of this name in a map."""
    if not isinstance(node, MappingNode):
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _before(text: str, node: Node) -> str:
    return text[: node.start_mark.index]


def _after(text: str, node: Node) -> str:
    return text[node.end_mark.index :]
