"""The texts inside a JSON value: lists them, and replaces them, in the order in which a reader sees them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def list_texts(value: Any) -> list[str]:
    """Every text of a JSON value, keys included, each key before its value."""
    return list(_texts(value))


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of a JSON value in which every text is changed, keys included, in the order of `list_texts`.

    Keys that become equal are numbered, so that no value is lost.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        changed: dict[Any, Any] = {}
        for key, item in value.items():
            name = _unused(change(key), changed) if isinstance(key, str) else key
            changed[name] = map_texts(item, change)
        return changed
    if isinstance(value, list | tuple):
        return [map_texts(item, change) for item in value]
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str):
                yield key
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _unused(name: str, names: Mapping[Any, Any]) -> str:
    number, unused = 1, name
    while unused in names:
        number += 1
        unused = f"{name} ({number})"
    return unused
