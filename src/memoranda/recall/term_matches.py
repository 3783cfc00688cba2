"""The values of the ranking: the postings of each term, what a query asks for besides its words, a session's score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memoranda.index.postings import Posting
from memoranda.recall.dates import TimeRange
from memoranda.recall.query import Perspective


@dataclass(frozen=True, slots=True)
class TermMatches:
    """The postings of one term. `frequency` also counts matches that were not fetched."""

    postings: list[Posting]
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
