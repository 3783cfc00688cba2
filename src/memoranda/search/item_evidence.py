"""Finds the items that answer a question: the notes of a person, and what programs keep."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from memoranda.memory.curated.notes import Note, read_note
from memoranda.search.excerpts import CUT, best_match
from memoranda.search.index.tokenizer import tokenize
from memoranda.search.query import content_words, parse
from memoranda.support.shorten import shorten_end
from memoranda.types import FoundItem, Item

SearchItems = Callable[..., list[FoundItem]]
"""`ItemSearch.search` of one user."""
# At least this share of a question, by the weight of its words, must be in an item that is shown unasked.
_FLOOR = 0.5
_MAX_FOUND = 6
_MAX_CHARS = 500
_BEFORE_MATCH = 100


class ItemEvidence(NamedTuple):
    """An item that has words of a question, the part of its text that has them, and its score."""

    item: Item
    text: str
    score: float

    @property
    def note(self) -> Note | None:
        """The note that the item is; None for an item of a program."""
        return read_note(self.item.namespace, self.item.value)

    @property
    def kind(self) -> str:
        return "item" if self.note is None else "note"

    @property
    def replaced(self) -> str:
        """The handle of the entry that says since then what this note said, or something else in its place."""
        return self.note.replaced if self.note is not None else ""

    @property
    def day(self) -> str:
        """The day of the last change."""
        return datetime.fromtimestamp(self.item.updated_at, UTC).date().isoformat()

    @property
    def shown(self) -> str:
        """The text with its date and origin."""
        if (note := self.note) is not None:
            return note.shown
        return f"{self.text} [item {'/'.join(self.item.namespace)} {self.item.key}, {self.day}]"

    def answers(self, question: str) -> bool:
        """Whether it has most of a question; an item of a program, more than one word of it, which may be chance."""
        is_chance = self.note is None and len(content_words(question).intersection(tokenize(self.text))) == 1
        return self.score >= _FLOOR and not is_chance


def find_items(
    search: SearchItems, query: str, prefix: Sequence[str] = (), limit: int = _MAX_FOUND
) -> list[ItemEvidence]:
    """The notes and items that have words of a query, the best first; without a query, the latest."""
    found = search(prefix, query or None, limit=limit)
    return [ItemEvidence(hit.item, _passage(hit.text, query), hit.score or 0.0) for hit in found]


def _passage(text: str, query: str) -> str:
    """The part of a text around the best match."""
    start = max(0, best_match(text, parse(query)) - _BEFORE_MATCH) if len(text) > _MAX_CHARS and query else 0
    return (CUT if start else "") + shorten_end(text[start:], _MAX_CHARS)
