"""A turn as messages for Honcho: long texts in parts, and the key of the delivery in the metadata of each."""

from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.external.vendors.honcho.client import MAX_MESSAGE_CHARS
from memoranda.external.vendors.text_parts import split_text

SOURCE = "memoranda"


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
