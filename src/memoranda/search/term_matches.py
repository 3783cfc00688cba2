"""The values of the ranking: messages with their terms, what a query asks for besides its words, a session's score."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from memoranda.search.dates import TimeRange
from memoranda.search.index.postings import Posting
from memoranda.search.query import Perspective


@dataclass(frozen=True, slots=True)
class MatchedTerm:
    """One term as the ranking weighs it. `frequency` also counts matches that were not fetched."""

    frequency: int
    framing: bool = False
    group: str = ""
    """The token of a typed term. Of a typed term and the words that are related to it, a message counts one."""
    typed: bool = True
    """False for what the search adds to the query: a related word, or the signs of a standing instruction."""
    closeness: float = 1.0
    """How close a related word is to the typed term."""
    bonus: float = 0.0
    """Its weight as a share of the weight of all typed terms, for what does not count by its rarity."""


Row = tuple[Posting, int]
"""A message, and which terms it has: bits, in the order of the terms."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The messages that were fetched, each once with all of its terms."""

    terms: Sequence[MatchedTerm]
    rows: Sequence[Row]

    @property
    def typed(self) -> int:
        """The terms that were typed, as bits."""
        return sum(1 << number for number, term in enumerate(self.terms) if term.typed)

    def count_rows(self) -> list[int]:
        """How many of the messages have each term."""
        return count_terms((mask for _, mask in self.rows), len(self.terms))

    def in_sessions(self, sessions: Collection[int]) -> "Matches":
        return replace(self, rows=[row for row in self.rows if row[0][1] in sessions])

    def only_occurring(self) -> "tuple[Matches, list[int]]":
        """The same messages without the terms that none of them has, and the numbers that the others had."""
        numbers = bits_of(occurring_terms(self.rows))
        if len(numbers) == len(self.terms):
            return self, numbers
        closer = _CloserBits(numbers)
        rows = [(row, closer[mask]) for row, mask in self.rows]
        return Matches([self.terms[number] for number in numbers], rows), numbers


def occurring_terms(rows: Iterable[Row]) -> int:
    """The terms that any of the messages has."""
    found = 0
    for _, mask in rows:
        found |= mask
    return found


def count_terms(masks: Iterable[int], terms: int) -> list[int]:
    """How many of the masks have each of the terms: many masks are equal, so few are looked at."""
    found = [0] * terms
    for mask, count in Counter(masks).items():
        for number in bits_of(mask):
            found[number] += count
    return found


def bits_of(mask: int) -> list[int]:
    """The numbers of the bits that are set, rising."""
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


class _CloserBits(dict[int, int]):
    """Each mask with only these bits, moved together."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__()
        self._numbers = numbers

    def __missing__(self, mask: int) -> int:
        self[mask] = found = sum(1 << place for place, number in enumerate(self._numbers) if mask >> number & 1)
        return found


class MaskValues(dict[int, float]):
    """The weight of each set of terms, computed when first asked for: the same sets occur often."""

    def __init__(self, weights: Sequence[float], groups: Sequence[str] = ()) -> None:
        """Of the terms of a group, the heaviest counts; a term without a group is one by itself."""
        super().__init__({0: 0.0})
        self._weights = weights
        self._groups = [group or str(number) for number, group in enumerate(groups or [""] * len(weights))]

    def __missing__(self, mask: int) -> float:
        best: dict[str, float] = {}
        for number, weight in enumerate(self._weights):
            if mask >> number & 1 and weight > best.get(self._groups[number], 0.0):
                best[self._groups[number]] = weight
        self[mask] = worth = sum(best.values())
        return worth


@dataclass(frozen=True, slots=True)
class AdjacentTerms:
    """The postings in which two terms are neighbours; `terms` are their numbers."""

    terms: tuple[int, ...]
    postings: list[Posting]


@dataclass(frozen=True, slots=True)
class RankingContext:
    """What a query asks for besides its words."""

    perspective: Perspective
    time_ranges: Sequence[TimeRange]
    now: float


class SessionScore(NamedTuple):
    """The score of a session and its reasons. Terms are bits, in their order."""

    session: int
    score: float
    best: Posting
    own: int
    """The terms in its best message."""
    near: int
    """The terms of the message that has most of them together with its neighbours."""
    whole: int
    matches: int
    signals: Mapping[str, float]
    asked: int = 0
    """If the session only repeats the question: how many sessions do."""
    repeated: int = 0
    """How many later sessions repeat one of its messages."""
    messages: tuple[tuple[int, float], ...] = ()
    """Its best messages and their scores."""
