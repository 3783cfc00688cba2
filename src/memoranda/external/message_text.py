"""Extracts the plain text of messages."""

from collections.abc import Mapping


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
