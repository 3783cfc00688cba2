"""Matches ordered by time: each session by its newest or oldest one."""

from collections.abc import Sequence
from typing import Literal

from memoranda.index.postings import Posting
from memoranda.recall.ranking import SessionScore

Sort = Literal["newest", "oldest"]

# What matches far worse than the best is left out.
_LEAST_OF_BEST = 0.5


def by_time(found: list[Posting], sort: Sort, scored: Sequence[SessionScore] = ()) -> list[SessionScore]:
    """Each session by its newest or oldest match, with the score and signals that it has in `scored`."""
    first: dict[int, Posting] = {}
    counts: dict[int, int] = {}
    for row in in_order(found, sort):
        first.setdefault(row.session, row)
        counts[row.session] = counts.get(row.session, 0) + 1
    scores = {each.session: each for each in scored}
    return [
        scores[session]._replace(best=row, matches=counts[session])
        if session in scores
        else SessionScore(session, 0.0, row, 1, 1, 1, counts[session], {})
        for session, row in first.items()
    ]


def in_order(found: list[Posting], sort: Sort) -> list[Posting]:
    return sorted(found, key=lambda row: (row.time, row.message), reverse=sort == "newest")


def well_matching(scores: list[SessionScore], sort: Sort | None) -> list[SessionScore]:
    """What was ranked, in the order that is wanted."""
    if sort is None or not scores:
        return scores
    least = _LEAST_OF_BEST * max(each.score for each in scores)
    kept = [each for each in scores if each.score >= least]
    return sorted(kept, key=lambda each: each.best.time, reverse=sort == "newest")
