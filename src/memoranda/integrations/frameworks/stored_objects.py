"""Stores an object of a framework as a message: its text becomes the content, the rest an extra field.

So a search finds the text, the record has it once, and the object comes back as it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.api.recall_filter import strip_recall

_OBJECT, _PATH = "sdk_object", "sdk_content"


def as_message(original: Mapping[str, Any], role: str, path: Sequence[str | int] = (), **fields: Any) -> dict[str, Any]:
    """A message for the record; `path` leads to the content, by keys and numbers, and `fields` are columns.

    Recalled memory that the model repeats is left out, as from every message.
    """
    kept, content = _take_out(original, path) if path else (dict(original), None)
    place = {_PATH: list(path)} if path else {}
    return dict(strip_recall({"role": role, "content": content, _OBJECT: kept, **place, **fields}))


def original_of(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """The object of a recorded message; None if no adapter recorded it."""
    kept, path = message.get(_OBJECT), message.get(_PATH)
    if not isinstance(kept, dict):
        return None
    return _put_back(kept, path, message.get("content")) if isinstance(path, list) else dict(kept)


def tool_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """A call of a tool as a message of the record lists it, so that a search finds its arguments."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _take_out(value: Any, path: Sequence[Any]) -> tuple[Any, Any]:
    kept, step = _copy(value), path[0]
    if len(path) > 1:
        kept[step], content = _take_out(kept[step], path[1:])
    else:
        content, kept[step] = kept[step], None
    return kept, content


def _put_back(value: Any, path: Sequence[Any], content: Any) -> Any:
    complete, step = _copy(value), path[0]
    complete[step] = content if len(path) == 1 else _put_back(complete[step], path[1:], content)
    return complete


def _copy(value: Any) -> Any:
    return list(value) if isinstance(value, list) else dict(value)
