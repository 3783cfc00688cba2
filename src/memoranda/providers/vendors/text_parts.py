"""Divides a long text into parts, for vendors that limit the length of a message."""

from collections.abc import Iterator

_CONTINUED = "[continued] "
# Where a text is divided, if that leaves at least half of the room used: paragraphs, lines, sentences, words.
_BREAKS = ("\n\n", "\n", ". ", " ")


def split_text(text: str, max_chars: int) -> Iterator[str]:
    """The text in parts of at most `max_chars`, divided between paragraphs, sentences or words if possible."""
    # Honcho's server answers half a surrogate pair with an error 500, and PostgreSQL stores no NUL.
    text = text.replace("\x00", "").encode("utf-8", "replace").decode().strip()
    prefix = ""
    while text:
        room = max_chars - len(prefix)
        end = len(text) if len(text) <= room else _division(text, room)
        yield prefix + text[:end].rstrip()
        text, prefix = text[end:].lstrip(), _CONTINUED


def _division(text: str, room: int) -> int:
    """Where to divide a text that is too long: after the best break in the second half of the room."""
    for mark in _BREAKS:
        found = text.rfind(mark, room // 2, room)
        if found >= 0:
            return found + len(mark)
    return room
