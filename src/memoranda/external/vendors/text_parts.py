"""Texts that a vendor accepts: clean, and in parts where a vendor limits the length of a message."""

from collections.abc import Iterator

_CONTINUED = "[continued] "
# Where a text is divided, if that leaves at least half of the room used: paragraphs, lines, sentences, words.
_BREAKS = ("\n\n", "\n", ". ", " ")


def clean_text(text: str) -> str:
    """A text without what a server cannot store: PostgreSQL has no NUL, and UTF-8 no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode().strip()


def split_text(text: str, max_chars: int) -> Iterator[str]:
    """The text in parts of at most `max_chars`, divided between paragraphs, sentences or words if possible."""
    text = clean_text(text)
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
