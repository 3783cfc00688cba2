"""Puts one table into a TOML text, or takes it out; everything else keeps its bytes and its comments.

A table is found by its header lines. The result is read back and compared with what was meant; where the table is
written in another way (inline, or with dotted keys), that shows, and nothing is changed.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

_HEADER = re.compile(r"^[ \t]*\[{1,2}[^\[\]]+\]{1,2}[ \t]*(?:#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")

Path = Sequence[str]


class TomlTextError(ValueError):
    """A text is no TOML, or cannot be changed without touching what is somebody else's."""


def read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlTextError(str(error)) from error


def with_table(text: str, path: Path, values: Mapping[str, Any]) -> str:
    """The text with this table, in the place of one that was there, else at its end."""
    meant = read(text)
    _at(meant, path[:-1], make=True)[path[-1]] = dict(values)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = _render(path, values).replace("\n", newline)
    kept, place = _cut(text, path)
    if place is None:
        head = kept if not kept or kept.endswith("\n") else kept + newline
        result = f"{head}{newline if head.strip() else ''}{block}"
    else:
        result = kept[:place] + block + kept[place:]
    return _proved(result, meant)


def without_table(text: str, path: Path) -> str:
    """The text without this table and those below it."""
    meant = read(text)
    parent = _at(meant, path[:-1])
    if parent is None or path[-1] not in parent:
        return text
    del parent[path[-1]]
    kept, place = _cut(text, path)
    if place is not None and kept[:place].endswith(("\n\n", "\n\r\n")) and not kept[place:].strip():
        # The blank line that set it off.
        kept = kept[:place].removesuffix("\r\n" if kept[:place].endswith("\r\n") else "\n") + kept[place:]
    return _proved(kept, meant)


def _proved(text: str, meant: dict[str, Any]) -> str:
    try:
        says = read(text)
    except TomlTextError:
        says = None
    if says is None or _without_empty(says) != _without_empty(meant):
        raise TomlTextError("the settings are written in a way that cannot be changed by tables")
    return text


def _cut(text: str, path: Path) -> tuple[str, int | None]:
    """The text without the lines of a table, and where they were."""
    kept: list[str] = []
    waiting: list[str] = []
    inside, place = False, None
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line.rstrip("\r\n")):
            inside = _path_of(line)[: len(path)] == list(path)
            # Comments and blanks right before a header belong to it.
            kept += waiting if not inside else []
            waiting = []
            if inside and place is None:
                place = sum(map(len, kept))
        if not inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            waiting.append(line)
        else:
            waiting = []
    return "".join(kept + waiting), place


def _path_of(header: str) -> list[str]:
    try:
        found: Any = tomllib.loads(header)
    except tomllib.TOMLDecodeError:
        # A line of a longer string that only looks like one.
        return []
    path = []
    while found:
        found = found[0] if isinstance(found, list) else found
        if not found:
            break
        ((name, found),) = found.items()
        path.append(name)
    return path


def _at(values: dict[str, Any], path: Path, *, make: bool = False) -> Any:
    for name in path:
        if make:
            values = values.setdefault(name, {})
        elif name not in values:
            return None
        else:
            values = values[name]
        if not isinstance(values, dict):
            raise TomlTextError(f"{name} is no table")
    return values


def _render(path: Path, values: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in values.items() if not isinstance(value, dict)]
    below = [_render([*path, key], value) for key, value in values.items() if isinstance(value, dict)]
    return "\n".join(lines) + "\n" + "".join(f"\n{each}" for each in below)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    raise TomlTextError(f"{value!r} cannot be written again")


def _without_empty(values: Any) -> Any:
    """Values without empty tables, which say nothing."""
    if not isinstance(values, dict):
        return values
    made = {key: _without_empty(value) for key, value in values.items()}
    return {key: value for key, value in made.items() if value != {}}
