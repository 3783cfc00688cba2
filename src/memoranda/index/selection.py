"""Chooses the sessions of an index whose messages have the most weight, out of the whole store."""

from collections.abc import Callable, Collection, Sequence
from heapq import nlargest
from typing import NamedTuple

from memoranda.index.doc_sets import DocMasks, DocSet, WeighedDocs, difference, from_docs
from memoranda.index.postings import Posting
from memoranda.index.view import IndexView

# Weights are rounded to so many steps.
_STEPS = 15
_SATURATION = 1.2
_ROUNDS = 4
# The weight of being preferred, as a share of all weights.
_PREFERENCE = 0.15


class Wanted(NamedTuple):
    """How much is chosen, and what is preferred."""

    docs: int = 160
    sessions: int = 60
    background: frozenset[str] = frozenset()
    """Sources whose messages must not crowd out the others."""
    also: frozenset[int] = frozenset()
    """Sessions that are chosen in any case."""

    def times(self, factor: int) -> "Wanted":
        return self._replace(docs=self.docs * factor, sessions=self.sessions * factor)


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
        self._counts = counts
        # What people and models said is preferred to the output of tools, and to what background sources repeat.
        preferred = view.spoken()
        if wanted.background:
            preferred = difference(preferred, view.of_sources(wanted.background))
        self._weighed = weigh(sets, weights, allowed, preferred)
        self._masks = DocMasks([*sets, preferred])
        self._weights = [*weights, _PREFERENCE * sum(weights)]
        self._numbers = _Numbers()
        self.complete = True
        """Whether every session that matches was chosen."""
        self.sessions = set(wanted.also)
        self._choose(allowed, wanted.docs, wanted.sessions)

    def postings(self, view: IndexView | None = None, *, sessions: Collection[int]) -> list[list[Posting]]:
        """For each pattern, the postings of these sessions, newest first."""
        every = self._view.docs_of_sessions(sessions)
        some = DocMasks([self._weighed.any]).of(every)
        docs = sorted((doc for doc, mask in zip(every, some, strict=True) if mask), reverse=True)
        rows = {doc: row for doc, row in self._view.rows(docs).items() if self._counts(row)}
        found: list[list[Posting]] = [[] for _ in self._weights]
        for row, mask in zip(rows.values(), self._masks.of(list(rows)), strict=True):
            for number in self._numbers[mask]:
                found[number].append(row)
        return found[:-1]

    def _choose(self, among: DocSet, docs: int, sessions: int) -> None:
        """Choose sessions by their heaviest documents: the more of the weights these have together, the better."""
        by_session: dict[int, list[int]] = {}
        for _ in range(_ROUNDS):
            chosen = self._weighed.heaviest(among, docs)
            rows = self._view.rows(chosen)
            for row, mask in zip(rows.values(), self._masks.of(list(rows)), strict=True):
                if self._counts(row):
                    by_session.setdefault(row[1], []).append(mask)
            exhausted = len(chosen) < docs
            if exhausted or len(by_session) >= sessions:
                break
            # A few sessions have all of these documents, so the next round looks at the others.
            among = difference(among, from_docs([*chosen, *self._view.docs_of_sessions(by_session)]))
        self.complete = self.complete and exhausted and len(by_session) <= sessions
        if len(by_session) > sessions:
            promise = {session: self._promise(masks) for session, masks in by_session.items()}
            self.sessions.update(nlargest(sessions, promise, key=promise.__getitem__))
        else:
            self.sessions.update(by_session)

    def _promise(self, masks: Sequence[int]) -> float:
        """The weight of the heaviest document, and how much all of them have together."""
        weights = self._weights
        counts: dict[int, int] = {}
        heaviest = 0.0
        for mask in masks:
            total = 0.0
            for number in self._numbers[mask]:
                counts[number] = counts.get(number, 0) + 1
                total += weights[number]
            heaviest = max(heaviest, total)
        together = 0.0
        for number in sorted(counts):
            count = counts[number]
            together += weights[number] * count / (count + _SATURATION)
        return heaviest + together


class _Numbers(dict[int, tuple[int, ...]]):
    """The numbers of the bits in each mask: the same masks occur often."""

    def __missing__(self, mask: int) -> tuple[int, ...]:
        self[mask] = found = tuple(number for number in range(mask.bit_length()) if mask >> number & 1)
        return found


def weigh(
    sets: Sequence[DocSet], weights: Sequence[float], allowed: DocSet, preferred: DocSet | None = None
) -> WeighedDocs:
    """Add up the weights of the sets for each document that is allowed."""
    unit = max(weights, default=1.0) / _STEPS
    steps = [max(1, round(weight / unit)) for weight in weights]
    bonus = None if preferred is None else (preferred, max(1, round(_PREFERENCE * sum(steps))))
    return WeighedDocs(list(zip(sets, steps, strict=True)), allowed, bonus)
