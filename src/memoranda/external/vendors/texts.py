"""Texts that come from a vendor and go to it: recalled items as a model reads them, and texts that a vendor accepts."""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end

SOURCE = "memoranda"
"""The metadata `source` of what Memoranda sends."""
_MAX_ITEM_CHARS = 1_200

_CONTINUED = "[continued] "
# Where a text is divided, if that leaves at least half of the room used: paragraphs, lines, sentences, words.
_BREAKS = ("\n\n", "\n", ". ", " ")


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """One thing that a vendor remembers.

    `time` is ISO 8601 text or seconds since 1970, when it was said or stored. `score` is the vendor's own, so scores of
    two vendors cannot be compared. `id` is the vendor's, for tools that change or delete it. `kind` is a word such as
    `fact`, `message` or `summary`.
    """

    text: str
    time: str | float | None = None
    score: float | None = None
    id: str = ""
    kind: str = ""


def format_items(items: Iterable[RecalledItem], vendor: str, max_chars: int) -> str:
    """One line per item with its labels; an item that no longer fits is left out, and repeated texts appear once.

    The first item is shortened if it alone is too long.
    """
    lines: list[str] = []
    left = max_chars
    for item in unique_items(items):
        labels = ", ".join(filter(None, (vendor, item.kind, _date(item.time), _score(item.score))))
        # The labels are ours and short; the text is the vendor's.
        room = min(_MAX_ITEM_CHARS, max_chars - len(labels) - 5)
        text = shorten_end(" ".join(item.text.split()), max(room, 0))
        line = f"- {text} ({labels})"
        if not text or len(line) > left:
            continue
        lines.append(line)
        left -= len(line) + 1
    return "\n".join(lines)


def unique_items(items: Iterable[RecalledItem]) -> list[RecalledItem]:
    """The items without empty ones, and without those whose text came before."""
    found: dict[str, RecalledItem] = {}
    for item in items:
        words = " ".join(item.text.split()).casefold()
        if words:
            found.setdefault(words, item)
    return list(found.values())


def _date(time: str | float | None) -> str:
    """The day of a time; empty when it is not one."""
    if isinstance(time, str):
        try:
            return datetime.fromisoformat(time.strip()).date().isoformat()
        except ValueError:
            return ""
    if isinstance(time, int | float) and not isinstance(time, bool):
        try:
            return datetime.fromtimestamp(time, UTC).date().isoformat()
        except (ValueError, OverflowError, OSError):
            return ""
    return ""


def _score(score: float | None) -> str:
    usable = isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
    return f"score {score:.2f}" if usable else ""


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


def split_turn(texts: Iterable[tuple[str, str]], key: str, max_chars: int) -> list[tuple[str, str, dict[str, Any]]]:
    """The parts of a turn, from pairs of author and text: each with its author, and metadata that identify it.

    The metadata have the key of the delivery, so an incomplete delivery can be completed; see `missing_parts`.
    """
    parts = [(author, part) for author, text in texts for part in split_text(text, max_chars)]
    about = {"source": SOURCE, "key": key, "parts": len(parts)}
    return [(author, text, {**about, "part": number}) for number, (author, text) in enumerate(parts)]


def missing_parts(messages: list[dict[str, Any]], stored: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages that are not among the stored ones; both have the metadata of `split_turn`."""
    found = {(about.get("key"), about.get("part")) for row in stored if (about := row.get("metadata") or {})}
    return [message for message in messages if (message["metadata"]["key"], message["metadata"]["part"]) not in found]


def _division(text: str, room: int) -> int:
    """Where to divide a text that is too long: after the best break in the second half of the room."""
    for mark in _BREAKS:
        found = text.rfind(mark, room // 2, room)
        if found >= 0:
            return found + len(mark)
    return room
