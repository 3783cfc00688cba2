"""What was said, as plain text without recalled memory in it."""

from collections.abc import Callable, Mapping
from typing import Any


def plain_text(content: object) -> str:
    """The text of a message's content: text itself, or the text parts of multimodal content, one per line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    texts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def whole(text: str) -> str:
    """Text without halves of characters, which no database and no network takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """A JSON value with every text in it cleaned, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        names = {key: clean(key) if isinstance(key, str) else key for key in value}
        return {names[key]: cleaned(item, clean) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item, clean) for item in value]
    return value
