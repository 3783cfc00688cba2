"""Changes the value of one table in a TOML text; everything else keeps its bytes, comments included.

A new table goes to the end of the text, or into its parent where that is an inline table. Removing a table that was
added here restores the text byte for byte. Every result is parsed again: if its value is not the wanted one, the edit
is refused.
"""

import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Comment, InlineTable, Item, Table, Whitespace

from memoranda.integrations.hosts.host import UnusableSettingsError

_BOM = "\ufeff"
# Marks the removed table while tomlkit renders the rest. TOML allows NUL nowhere; without the line end tomlkit
# would add one.
_GAP = "\0\n"


def read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(_BOM))
    except tomllib.TOMLDecodeError as error:
        raise UnusableSettingsError(str(error)) from error


def rewrite_toml(text: str, wanted: Mapping[str, Any], parent: str, name: str) -> str:
    """Returns the text edited to have the `wanted` value, which may differ only in the table `parent.name`."""
    settings = read_toml(text)
    current, values = settings.get(parent, {}).get(name), wanted.get(parent, {}).get(name)
    if current == values:
        return text
    bom, body = text[: text.startswith(_BOM)], text.removeprefix(_BOM)
    try:
        document = tomlkit.parse(body)
        if values is None:
            result = _remove(document, body, parent, name)
        elif isinstance(current, dict):
            result = _update(document, body, document[parent][name], current, values)
        elif isinstance(inline := document.get(parent), InlineTable):
            inline[name] = values
            result = tomlkit.dumps(document)
        else:
            result = _append(body, {parent: {name: values}})
    except TOMLKitError as error:
        raise UnusableSettingsError(str(error)) from error
    if _without_empty_tables(read_toml(result)) != _without_empty_tables(wanted):
        raise UnusableSettingsError("the settings are written in a way that cannot be changed safely")
    result = bom + result
    if current is None and rewrite_toml(result, settings, parent, name) != text:
        # tomlkit changes the spaces before the commas of some inline tables.
        raise UnusableSettingsError(f"removing {parent}.{name} later would not restore the file byte for byte")
    return result


def _append(text: str, table: Mapping[str, Any]) -> str:
    """Adds a table at the end, after a blank line. The result ends in a newline only if the text did.

    `_close_gap` relies on both to restore the text.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    block = tomlkit.dumps(table).replace("\n", newline)
    if not text.strip():
        return text + block
    if text.endswith("\n"):
        return text + newline + block
    return text + newline * 2 + block.removesuffix(newline)


def _update(
    document: tomlkit.TOMLDocument, text: str, table: Any, current: Mapping[str, Any], values: Mapping[str, Any]
) -> str:
    """Changes only the keys of a table that differ, so that the others keep their comments."""
    for key in current.keys() - values.keys():
        del table[key]
    for key, value in values.items():
        if current.get(key) != value:
            table[key] = value
    result = tomlkit.dumps(document)
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        return result.replace("\r\n", "\n").replace("\n", "\r\n")
    return result


def _remove(document: tomlkit.TOMLDocument, text: str, parent: str, name: str) -> str:
    for key, item in document.body:
        if key is None or key.key != parent:
            continue
        if isinstance(item, InlineTable):
            del item[name]
            return tomlkit.dumps(document)
        if isinstance(item, Table):
            _cut_out(item.value, name)
    before, *rest = tomlkit.dumps(document).split(_GAP)
    return _close_gap(before, "".join(rest), text)


def _cut_out(container: Container, name: str) -> None:
    """Replaces a table with a gap; a table that is written in several parts leaves one gap per part."""
    for index, (key, item) in enumerate(container.body):
        if key is not None and key.key == name:
            container.body[index] = (None, Whitespace(_GAP + _trailing_comments(item)))


def _trailing_comments(item: Item) -> str:
    """Returns the comments and blank lines at the end of a table, which belong to whatever follows it."""
    text = ""
    for _, child in reversed(item.value.body if isinstance(item, Table) else []):
        if not isinstance(child, Comment | Whitespace):
            return _trailing_comments(child) + text
        text = child.as_string() + text
    return text


def _close_gap(before: str, after: str, original: str) -> str:
    """Joins the text before and after a removed table, without the newlines that `_append` added."""
    if after.strip() and before.endswith(("\n\n", "\n\r\n")) and after.startswith(("\n", "\r\n")):
        # The host added a table after ours: of the two blank lines, the first came with our table.
        before = _without_last_newline(before)
    if after.strip() or not before.strip():
        return before + after
    if before.endswith(("\n\n", "\n\r\n")):
        before = _without_last_newline(before)
    return (before if original.endswith("\n") else _without_last_newline(before)) + after


def _without_last_newline(text: str) -> str:
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def _without_empty_tables(value: Any) -> Any:
    """Drops empty tables, which contain no setting: removing the only server may leave one."""
    if not isinstance(value, Mapping):
        return value
    children = {key: _without_empty_tables(child) for key, child in value.items()}
    return {key: child for key, child in children.items() if child != {}}
