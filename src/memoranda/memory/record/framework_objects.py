"""How objects of agent frameworks are stored as messages, and what their conversations are called in the record.

Adapters and importers store them in the same way, so that an adapter continues what was imported from the framework's
own storage. The text of an object becomes the content of a message, the rest an extra field: a search finds the text,
and the record has it once.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

OBJECT_FIELD, PATH_FIELD = "sdk_object", "sdk_content"


def join_names(framework: str, user: str | None, *names: str) -> str:
    """An id made of a framework's own names, which are quoted: two of them never share one, nor do two users."""
    return f"{framework}{user_mark(user)}:{'/'.join(quote(name, safe='') for name in names)}"


def user_mark(user: str | None) -> str:
    """What the id of a user's conversation has before its colon."""
    return "" if user is None else f"@{quote(user, safe='')}"


def object_fields(original: Mapping[str, Any], path: Sequence[str | int] = ()) -> dict[str, Any]:
    """The fields of a message that keep an object; `path` leads to its content, by keys and numbers."""
    if not path:
        return {"content": None, OBJECT_FIELD: dict(original)}
    kept, content = _take_out(original, path)
    return {"content": content, OBJECT_FIELD: kept, PATH_FIELD: list(path)}


def original_of(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """The object of a recorded message; None if it was not recorded as one."""
    kept, path = message.get(OBJECT_FIELD), message.get(PATH_FIELD)
    if not isinstance(kept, dict):
        return None
    return _put_back(kept, path, message.get("content")) if isinstance(path, list) else dict(kept)


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
