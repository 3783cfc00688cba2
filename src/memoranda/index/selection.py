"""Chooses the sessions of an index whose messages have the most weight, out of the whole store."""

from collections.abc import Callable, Collection, Sequence
from heapq import nlargest
from typing import NamedTuple

from memoranda.index.doc_sets import DocSet, Membership, WeighedDocs, difference, from_docs, intersection
from memoranda.index.message_text import CONVERSATION_KINDS
from memoranda.index.postings import Posting
from memoranda.index.view import IndexView

# Weights are rounded to so many steps.
_STEPS = 15
_SATURATION = 1.2
_ROUNDS = 4
_TOGETHER = 1.0


class Wanted(NamedTuple):
    """How much is chosen: of what people and models said, and of everything else."""

    docs: int = 160
    sessions: int = 50
    other_docs: int = 40
    """Of the output of tools; and as many of `background` sources, which must not crowd out the others."""
    other_sessions: int = 10
    background: frozenset[str] = frozenset()
    also: frozenset[int] = frozenset()
    """Sessions that are chosen in any case."""

    def times(self, factor: int) -> "Wanted":
        return self._replace(
            docs=self.docs * factor,
            sessions=self.sessions * factor,
            other_docs=self.other_docs * factor,
            other_sessions=self.other_sessions * factor,
        )


class BestSessions(NamedTuple):
    """For each pattern, its postings in the sessions that were chosen."""

    postings: list[list[Posting]]
    complete: bool
    """Whether every session that matches was chosen."""


class Selection:
    """The sessions of one view of the index whose messages have the highest sums of weights."""

    def __init__(
        self,
        view: IndexView,
        sets: Sequence[DocSet],
        weights: Sequence[float],
        allowed: DocSet,
        wanted: Wanted,
        counts: Callable[[Posting], bool],
    ) -> None:
        """`sets` are the documents of each pattern, with these weights; rows that do not count are left out."""
        self._view = view
        self._members = [Membership(docs) for docs in sets]
        self._weights = weights
        self._counts = counts
        self._weighed = weigh(sets, weights, allowed)
        self.complete = True
        """Whether every session that matches was chosen."""
        self.sessions = set(wanted.also)
        background = intersection(allowed, view.of_sources(wanted.background))
        spoken = view.of_kinds(CONVERSATION_KINDS)
        foreground = difference(allowed, background)
        self._choose(intersection(foreground, spoken), wanted.docs, wanted.sessions)
        self._choose(difference(foreground, spoken), wanted.other_docs, wanted.other_sessions)
        self._choose(background, wanted.other_docs, wanted.other_sessions)

    def postings(self, view: IndexView | None = None, *, sessions: Collection[int]) -> list[list[Posting]]:
        """For each pattern, the postings of these sessions, newest first."""
        some = Membership(self._weighed.any)
        docs = sorted((doc for doc in self._view.docs_of_sessions(sessions) if doc in some), reverse=True)
        rows = [(doc, row) for doc, row in self._view.rows(docs).items() if self._counts(row)]
        return [[row for doc, row in rows if doc in members] for members in self._members]

    def _choose(self, among: DocSet, docs: int, sessions: int) -> None:
        """Choose sessions by their heaviest documents: the more of the weights these have together, the better."""
        by_session: dict[int, list[int]] = {}
        for _ in range(_ROUNDS):
            chosen = self._weighed.heaviest(among, docs)
            for doc, row in self._view.rows(chosen).items():
                if self._counts(row):
                    by_session.setdefault(row[1], []).append(doc)
            exhausted = len(chosen) < docs
            if exhausted or len(by_session) >= sessions:
                break
            # A few sessions have all of these documents, so the next round looks at the others.
            among = difference(among, from_docs([*chosen, *self._view.docs_of_sessions(by_session)]))
        self.complete = self.complete and exhausted and len(by_session) <= sessions
        promise = {session: self._promise(some) for session, some in by_session.items()}
        self.sessions.update(nlargest(sessions, promise, key=promise.__getitem__))

    def _promise(self, docs: Collection[int]) -> float:
        """The weight of the heaviest of these documents, and a share of what they have together."""
        together = 0.0
        sums = dict.fromkeys(docs, 0.0)
        for weight, members in zip(self._weights, self._members, strict=True):
            count = 0
            for doc in docs:
                if doc in members:
                    count += 1
                    sums[doc] += weight
            together += weight * count / (count + _SATURATION)
        return max(sums.values()) + _TOGETHER * together


def weigh(sets: Sequence[DocSet], weights: Sequence[float], allowed: DocSet) -> WeighedDocs:
    """Add up the weights of the sets for each document that is allowed."""
    unit = max(weights, default=1.0) / _STEPS
    return WeighedDocs(
        [(docs, max(1, round(weight / unit))) for docs, weight in zip(sets, weights, strict=True)], allowed
    )
