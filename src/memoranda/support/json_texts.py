"""The texts inside a JSON value: lists them, and replaces them, in the order in which a reader sees them."""

from collections.abc import Callable, Mapping
from typing import Any


def list_texts(value: Any, *, keys: bool = True) -> list[str]:
    """Every text of a JSON value, each key before its value; without keys if not `keys`."""
    texts: list[str] = []
    _collect_texts(value, keys, texts)
    return texts


def map_texts(value: Any, change: Callable[[str], str], *, keys: bool = True) -> Any:
    """A copy of a JSON value in which every text is changed, in the order of `list_texts`; also its keys if `keys`.

    Keys that become equal are numbered, so that no value is lost.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        changed: dict[Any, Any] = {}
        for key, item in value.items():
            name = _unused(change(key), changed) if keys and isinstance(key, str) else key
            changed[name] = map_texts(item, change, keys=keys)
        return changed
    if isinstance(value, list | tuple):
        return [map_texts(item, change, keys=keys) for item in value]
    return value


def _collect_texts(value: Any, keys: bool, texts: list[str]) -> None:
    match value:
        case str():
            texts.append(value)
        case {}:
            for key, item in value.items():
                if keys and isinstance(key, str):
                    texts.append(key)
                _collect_texts(item, keys, texts)
        case list() | tuple():
            for item in value:
                _collect_texts(item, keys, texts)


def _unused(name: str, names: Mapping[Any, Any]) -> str:
    number, unused = 1, name
    while unused in names:
        number += 1
        unused = f"{name} ({number})"
    return unused
