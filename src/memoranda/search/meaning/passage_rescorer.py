"""Reranks the first sessions by comparing the query with their best messages, one by one, with a slow model."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from memoranda.errors import MemorandaError
from memoranda.search.legs.leg import Candidates
from memoranda.search.meaning.session_texts import read_best
from memoranda.search.query import Query
from memoranda.search.rescorer import Rescored, RescoringContext

_log = logging.getLogger(__name__)

SIGNAL = "rerank"
DEPTH = 15
_WEIGHT = 1.0


class PassageScorer(Protocol):
    """Says how well passages answer a query."""

    def score(self, query: str, passages: Sequence[str], *, timeout: float, user: str) -> list[float]:
        """A number from 0 to 1 for each passage; raises MemorandaError."""


class PassageRescorer:
    """Adds the signal `rerank` to the first candidates and orders them by both."""

    def __init__(self, load: Callable[[], PassageScorer], *, seconds: float) -> None:
        """`load` may raise MemorandaError; `seconds` is the deadline of one search."""
        self._load = load
        self._seconds = seconds

    def rescore(self, query: Query, found: Candidates, context: RescoringContext) -> Rescored:
        deadline = time.monotonic() + self._seconds
        first = list(found.found[:DEPTH])
        texts = read_best(context.reader, first, context.filters)
        scored = [one for one in first if one.message_id in texts and not one.asked]
        if query.exact or len(scored) < 2:
            return Rescored(found)
        try:
            user = context.filters.scope.user or ""
            passages = [texts[one.message_id or 0].text for one in scored]
            timeout = deadline - time.monotonic()
            scores = self._load().score(query.text, passages, timeout=timeout, user=user)
        except MemorandaError as error:
            _log.warning("The first results were not reranked: %s", error)
            return Rescored(found, f"The first results were not reranked: {error}")
        by_session = {one.session_id: score for one, score in zip(scored, scores, strict=True)}
        unit = max(one.score for one in first) or 1.0
        ranked = []
        for one in first:
            signal = by_session.get(one.session_id, 0.0)
            ranked.append(
                one._replace(score=one.score + _WEIGHT * unit * signal, signals={**one.signals, SIGNAL: signal})
            )
        ranked.sort(key=lambda one: -one.score)
        return Rescored(replace(found, found=[*ranked, *found.found[DEPTH:]]))
