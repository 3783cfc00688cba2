"""The protocol of a rescorer: a second stage of a search, which changes the order of what the legs found.

A rescorer may be slow, may fail, and may need a model, so it has a deadline of its own and never raises: if it cannot
do its work, it returns the candidates as they are, with a note for the user.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memoranda.search.index.postings import Filters
from memoranda.search.index.reader import IndexReader
from memoranda.search.legs.leg import Candidates
from memoranda.search.query import Query


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


MakeRescorers = Callable[[], Sequence[Rescorer]]
"""Returns the rescorers of a search; called by the search, so that nothing is loaded before."""
