"""Chooses the sessions of an index whose messages have the most weight, out of the whole store."""

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from itertools import chain
from typing import NamedTuple

from memoranda.search.index.doc_sets import DocSet, WeighedDocs, difference, from_docs, masks_of
from memoranda.search.index.postings import Posting
from memoranda.search.index.view import IndexView

# Weights are rounded to so many steps.
_STEPS = 15
_SATURATION = 1.2
_ROUNDS = 4
# The weight of being preferred, as a share of all weights.
_PREFERENCE = 0.15


class Wanted(NamedTuple):
    """How much is chosen, and what is preferred."""

    docs: int = 80
    sessions: int = 30
    background: frozenset[str] = frozenset()
    """Sources whose messages must not crowd out the others."""
    also: frozenset[int] = frozenset()
    """Sessions that are chosen in any case."""

    def times(self, factor: int) -> "Wanted":
        return self._replace(docs=self.docs * factor, sessions=self.sessions * factor)


class BestSessions(NamedTuple):
    """The messages of the sessions that were chosen, each with the patterns that it matches: bits, in their order."""

    rows: list[tuple[Posting, int]]
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
        self._counts = counts
        # What people and models said is preferred to the output of tools, and to what background sources repeat.
        preferred = view.spoken()
        if wanted.background:
            preferred = difference(preferred, view.of_sources(wanted.background))
        self._weighed = weigh(sets, weights, allowed, preferred)
        self._allowed = allowed
        self._sets = [*sets, preferred]
        self._weights = [*weights, _PREFERENCE * sum(weights)]
        self.complete = True
        """Whether every session that matches was chosen."""
        self.sessions = set(wanted.also)
        self._choose(wanted.docs, wanted.sessions)

    def rows(self, sessions: Collection[int]) -> list[tuple[Posting, int]]:
        """The messages of these sessions that match any pattern, newest first; the patterns of each as bits."""
        masks = masks_of(self._view.docs_of_sessions(sessions), self._sets[:-1], self._allowed)
        found = self._view.rows(sorted(masks, reverse=True))
        return [(row, masks[doc]) for doc, row in found.items() if self._counts(row)]

    def _choose(self, docs: int, sessions: int) -> None:
        """Choose sessions by their heaviest documents: the more of the weights these have together, the better."""
        among = self._weighed.any
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
        if len(by_session) > sessions:
            promise = self._promises(by_session)
            self.sessions.update(nlargest(sessions, promise, key=promise.__getitem__))
        else:
            self.sessions.update(by_session)

    def _promises(self, by_session: Mapping[int, Sequence[int]]) -> dict[int, float]:
        """For each session, the weight of its heaviest document, and how much all of its documents have together."""
        totals = dict.fromkeys(sorted(chain.from_iterable(by_session.values())), 0.0)
        session_of = {doc: session for session, docs in by_session.items() for doc in docs}
        together = dict.fromkeys(by_session, 0.0)
        for docs, weight in zip(self._sets, self._weights, strict=True):
            counts: dict[int, int] = {}
            for doc in docs.keep(totals):
                totals[doc] += weight
                session = session_of[doc]
                counts[session] = counts.get(session, 0) + 1
            for session, count in counts.items():
                together[session] += weight * count / (count + _SATURATION)
        return {session: together[session] + max(map(totals.__getitem__, by_session[session])) for session in together}


def weigh(
    sets: Sequence[DocSet], weights: Sequence[float], allowed: DocSet, preferred: DocSet | None = None
) -> WeighedDocs:
    """Add up the weights of the sets for each document that is allowed."""
    unit = max(weights, default=1.0) / _STEPS
    steps = [max(1, round(weight / unit)) for weight in weights]
    bonus = None if preferred is None else (preferred, max(1, round(_PREFERENCE * sum(steps))))
    return WeighedDocs(list(zip(sets, steps, strict=True)), allowed, bonus)
