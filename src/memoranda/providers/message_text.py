"""Extracts the plain text of messages, and cleans every text inside a JSON value."""

from collections.abc import Callable, Mapping
from typing import Any


def plain_text(content: object) -> str:
    """The text of a message's content: a string, or the text parts of multimodal content, one per line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    texts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which neither a database nor a network can encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_texts(value: Any, clean: Callable[[str], str]) -> Any:
    """A copy of a JSON value in which `clean` was applied to every text, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        names = {key: clean(key) if isinstance(key, str) else key for key in value}
        return {names[key]: clean_texts(item, clean) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_texts(item, clean) for item in value]
    return value
