"""A turn as messages for Honcho: long texts in parts, and the key of the delivery in the metadata of each."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memoranda.providers.vendors.honcho.wire import MAX_MESSAGE_CHARS

SOURCE = "memoranda"
_CONTINUED = "[continued] "
# Where a text is divided, if that leaves at least half of the room used: paragraphs, lines, sentences, words.
_BREAKS = ("\n\n", "\n", ". ", " ")


def build_messages(
    texts: Iterable[tuple[str, str]], key: str, created_at: str, max_chars: int = MAX_MESSAGE_CHARS
) -> list[dict[str, Any]]:
    """The messages of a turn from pairs of peer and text; empty texts are left out.

    Each part carries `key`, its number and the number of parts, so an incomplete delivery can be completed.
    """
    parts = [(peer, part) for peer, text in texts for part in split_text(text, max_chars)]
    return [
        {
            "peer_id": peer,
            "content": part,
            "metadata": {"source": SOURCE, "key": key, "part": number, "parts": len(parts)},
            "created_at": created_at,
        }
        for number, (peer, part) in enumerate(parts)
    ]


def missing_messages(messages: list[dict[str, Any]], stored: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a turn that the server does not have yet."""
    numbers = {(row.get("metadata") or {}).get("part") for row in stored}
    return [message for message in messages if message["metadata"]["part"] not in numbers]


def split_text(text: str, max_chars: int = MAX_MESSAGE_CHARS) -> Iterator[str]:
    """The text in parts of at most `max_chars`, divided between paragraphs, sentences or words if possible."""
    # The server refuses half a surrogate pair with an error 500, and PostgreSQL stores no NUL.
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
