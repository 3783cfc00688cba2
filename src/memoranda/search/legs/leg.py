"""The protocols of the two stages of a search: legs find candidates, and rescorers change their order.

A rescorer may be slow, may fail, and may need a model, so it has a deadline of its own and never raises: if it cannot
do its work, it returns the candidates as they are, with a note for the user.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol, runtime_checkable

from memoranda.search.index.postings import Filters
from memoranda.search.index.reader import IndexReader
from memoranda.search.query import Query, Term
from memoranda.search.ranking import Sort
from memoranda.support.lazy_dataclass import dataclass


class Candidate(NamedTuple):
    """One session that a leg found, with its best message."""

    session_id: str
    conversation_id: str
    source: str
    message_id: int | None
    """None if only the title of the session matches."""
    role: str
    time: float
    """When the best message was written, in seconds since the epoch."""
    score: float
    """Comparable within one leg only: fusion uses the order of a leg, not its scores."""
    signals: Mapping[str, float]
    """What the score is made of, by name."""
    matches: int
    """How many messages of the session match, as far as the leg looked."""
    asked: int = 0
    """If the session only repeats the question of the query: how many sessions do. One represents all of them."""
    repeated: int = 0
    """How many later sessions repeat one of its messages."""
    messages: tuple[tuple[int, float], ...] = ()
    """Its best messages, with scores that are comparable within the session."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The result of a leg: at most one candidate per session, best first, or by time if the search asks for that."""

    found: Sequence[Candidate]
    how: str = ""
    """How the candidates match, in words for the user."""
    missing: tuple[Term, ...] = ()
    """The terms that the leg found nowhere within the filters."""
    sessions: int = 0
    """How many sessions match in all; more than there are candidates if the leg omits the worst."""
    truncated: bool = False
    """Whether the leg looked at only a part of what matches."""
    asked: Mapping[str, int] = field(default_factory=dict)
    """How many messages have a term only because they repeat the question, by the term's text."""
    expanded: tuple[str, ...] = ()
    """The words that a model suggested, by which some candidates were found."""
    more: bool = False
    """Whether sessions match that are not counted in `sessions`, because others match better."""


@dataclass(frozen=True, slots=True)
class SearchContext:
    """What one search passes to its legs. All of them read the same view of the index."""

    reader: IndexReader
    now: float
    sort: Sort | None = None
    explain: bool = False
    """Every candidate needs signals, even where the order does not depend on them."""


class Leg(Protocol):
    """One way of finding sessions, for the length of one search.

    A leg must apply the filters itself, above all the scope: fusion does not check its candidates. `limit` is how many
    conversations the search wants; a leg returns more candidates, because several may belong to one conversation.
    """

    def candidates(self, query: Query, filters: Filters, limit: int) -> Candidates: ...


MakeLeg = Callable[[SearchContext], Leg]


@dataclass(frozen=True, slots=True)
class RescoringContext:
    """What one search passes to its rescorers."""

    reader: IndexReader
    filters: Filters
    """Those of the legs. A rescorer that adds candidates must apply them itself, above all the scope."""
    limit: int
    """How many conversations the search wants."""


class Rescored(NamedTuple):
    """The candidates in their new order, and a sentence for the user if something failed."""

    candidates: Candidates
    note: str | None = None


class Rescorer(Protocol):
    """Changes the order of candidates; used for searches by relevance only."""

    def rescore(self, query: Query, found: Candidates, context: RescoringContext) -> Rescored: ...


@runtime_checkable
class ComparesTexts(Protocol):
    """A rescorer that compares a query with texts which are in no conversation."""

    def compare(self, query: Query, texts: Mapping[int, str], context: RescoringContext) -> dict[int, float]:
        """How alike each text is to the query, from -1 to 1; those that were not compared are left out."""


MakeRescorers = Callable[[], Sequence[Rescorer]]
"""Returns the rescorers of a search; called by the search, so that nothing is loaded before."""
