"""The pipeline of a search: parse, ask the legs for candidates, fuse, fold by conversation.

Each leg (`memoranda.search.legs`) finds sessions in its own way and applies the filters itself. Fusion merges the
candidates of all legs into one order, and folding leaves one hit per conversation. The relevance floor
(`memoranda.search.relevance`) and the answer of the tool (`memoranda.search.tool`) build on the hits.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from memoranda.search import guidance
from memoranda.search.index.follower import Nudged
from memoranda.search.index.postings import TITLE, Filters, IndexSize, Or, Pattern, Without
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.legs import LEGS
from memoranda.search.legs.leg import Candidate, Candidates, MakeLeg, MakeRescorers, RescoringContext, SearchContext
from memoranda.search.legs.words import WordLeg
from memoranda.search.query import Query, Term, parse, widen
from memoranda.search.ranking import Sort
from memoranda.support.lazy_dataclass import dataclass

NOTHING_TYPED = "nothing to look for"
NOT_ALL = "There are so many matches that only the newest were searched; add a word or a time."
_MAX_MESSAGES = 100_000
# How many conversations the legs look for at least, if rescorers order them.
_RESCORED = 50
# Reciprocal rank fusion: the usual constant, which prevents the first rank of one leg from deciding everything.
_RANK_OFFSET = 60
_EMPTY = IndexSize(0, 0, 0)
# So many sessions of one conversation may have a title.
_MAX_TITLES = 50


Hit = Candidate
"""One conversation, represented by its session that matches best; `matches` counts the messages of all its sessions."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to a search. `how` says in words how the hits match.

    `missing` are the terms that occur nowhere in what this user can see, with or without the filters.
    """

    query: Query
    hits: tuple[Hit, ...]
    how: str
    terms: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    matched_sessions: int = 0
    note: str | None = None
    unlisted: bool = False
    """Whether worse matches exist that no limit would list."""
    asked: Mapping[str, int] = field(default_factory=dict)
    """How many messages have a term only because they repeat the question, by the term's text."""
    expanded: tuple[str, ...] = ()
    """The words that a model suggested in addition."""
    size: IndexSize = _EMPTY
    """How much was searched."""
    frequencies: tuple[int, ...] = ()
    """How many messages and titles have each term of the query."""


@dataclass(frozen=True, slots=True)
class MessageMatches:
    """Messages by their ids, best first; `how` says in words how they match."""

    ids: tuple[int, ...]
    how: str


class Search:
    """Searches one index through its legs."""

    def __init__(
        self,
        index: SearchIndex,
        legs: Sequence[MakeLeg] = LEGS,
        *,
        follower: Nudged | None = None,
        rescorers: Sequence[MakeRescorers] = (),
    ) -> None:
        """`follower` updates or checks the index after a search that found it behind, or found nothing.

        `rescorers` change the order of the candidates of searches by relevance.
        """
        self._rescorers = rescorers
        self._index = index
        self._legs = legs
        self._follower = follower

    def find(
        self,
        text: str,
        filters: Filters,
        *,
        limit: int,
        sort: Sort | None = None,
        now: float | None = None,
        explain: bool = False,
        longer: bool = False,
    ) -> SearchResult:
        """The conversations that match best, or the newest or oldest of those that match.

        With `explain` every hit has its signals, even where the order does not depend on them. With `longer`, words
        that contain those of the query match if nothing else does.
        """
        query, now = parse(text), time.time() if now is None else now
        found = SearchResult(query, (), NOTHING_TYPED)
        notes: list[str] = []
        if query.parts:
            found = self._find(query, filters, limit, sort, now, explain, notes)
            for wider in self._widen(query) if longer and not found.hits else ():
                others = self._find(wider, filters, limit, sort, now, explain, [])
                if others.hits:
                    found = replace(others, how=guidance.LONGER_WORDS, terms=found.terms, missing=found.missing)
                    break
        if self._follower is not None and (found.note or found.missing or not found.hits):
            # A message that is not found may be missing from the index.
            self._follower.nudge(hurry=True, doubtful=not found.note)
        return replace(found, note=" ".join(dict.fromkeys(filter(None, [found.note, *notes])))) if notes else found

    def _widen(self, query: Query) -> Iterator[Query]:
        """The query with words that begin with its own, then with all that contain them."""
        for inside in (False, True):
            with self._index.reading() as reader:
                wider = widen(query, partial(reader.longer_words, inside=inside))
            if wider is not None:
                yield wider

    def _find(
        self,
        query: Query,
        filters: Filters,
        limit: int,
        sort: Sort | None,
        now: float,
        explain: bool,
        notes: list[str],
    ) -> SearchResult:
        """`notes` receives what rescorers say to the user."""
        rescorers = [one for make in self._rescorers for one in make()] if sort is None else []
        wanted = max(limit, _RESCORED) if rescorers else limit
        with self._index.reading() as reader:
            # A rescorer may ask a model, which is too long for a view of the record.
            with reader.view_in_file():
                legs = [make_leg(SearchContext(reader, now, sort, explain)) for make_leg in self._legs]
                fused = fuse([leg.candidates(query, filters, wanted) for leg in legs], sort)
            for rescorer in rescorers:
                fused, note = rescorer.rescore(query, fused, RescoringContext(reader, filters, limit))
                notes += [note] if note else []
            return SearchResult(
                query,
                tuple(fold(fused, limit)),
                fused.how,
                tuple(dict.fromkeys(term.text for term in query.terms)),
                _missing_everywhere(reader, filters, fused.missing),
                fused.sessions,
                reader.note or (NOT_ALL if fused.truncated else None),
                fused.more or _count_sessions(fused) < fused.sessions,
                fused.asked,
                fused.expanded,
                reader.size(),
                tuple(reader.frequency(term.pattern) for term in query.terms) if fused.found else (),
            )

    def messages(
        self,
        text: str,
        filters: Filters,
        *,
        limit: int,
        offset: int = 0,
        sort: Sort | None = None,
        now: float = 0.0,
    ) -> MessageMatches:
        """The messages with the words of the query, best first; a negative limit means all.

        For a question, and if no message has all of them, those with most of them match. A phrase, a prefix or a group
        means what it says: it must match, and so must all words beside it, unless they form a sentence.
        """
        query = parse(text)
        if not query.parts:
            return MessageMatches((), guidance.NOT_FOUND)
        size = _MAX_MESSAGES if limit < 0 else limit
        with self._index.reading() as reader, reader.view_in_file():
            leg = WordLeg(SearchContext(reader, now, sort))
            how = guidance.AS_TYPED if query.exact else guidance.ALL_WORDS
            is_question = query.question and not query.exact and sort is None
            found = [] if is_question else leg.messages(query, filters, offset + size, relax=False)
            if not found and (exact := _exact_parts(query)) is not None:
                # In a sentence, only what is quoted, starred or grouped is meant literally.
                literal = set(leg.messages(exact, filters, _MAX_MESSAGES, relax=False)) if exact.parts else None
                found = leg.messages(query, filters, offset + size, relax=True)
                found = found if literal is None else [message for message in found if message in literal]
                how = guidance.FEWER_WORDS
        return MessageMatches(tuple(found[offset : offset + size]), how)


def occurs(index: SearchIndex, query: Query, filters: Filters, ignored: str | None = None) -> bool:
    """Whether any word of a query occurs in what passes the filters, except in the titles of one conversation."""
    pattern: Pattern = Or(tuple(term.pattern for term in query.terms))
    if query.unwanted is not None:
        pattern = Without(pattern, query.unwanted)
    with index.reading() as reader:
        rows = reader.postings(pattern, filters, _MAX_TITLES)
        sessions = {} if ignored is None else reader.sessions({row.session for row in rows})
    own = {number for number, session in sessions.items() if session.conversation_id == ignored}
    return any(row.role != TITLE or row.session not in own for row in rows)


def _exact_parts(query: Query) -> Query | None:
    """The query with only the parts that a relaxed search must match literally; None if it cannot be relaxed."""
    exact = tuple(part for part in query.parts if part.exact)
    if not query.exact:
        return replace(query, parts=())
    return replace(query, parts=exact) if query.question and exact else None


def fuse(results: Sequence[Candidates], sort: Sort | None = None) -> Candidates:
    """The candidates of all legs in one order, each session once; unchanged if only the first leg found any.

    By relevance, a session earns from every leg the reciprocal of its rank there. The first leg that found a session
    names its best message; the first leg that found anything says how it matches.
    """
    if not any(result.found for result in results[1:]):
        return results[0]
    merged: dict[str, Candidate] = {}
    scores: dict[str, float] = {}
    for result in results:
        for rank, candidate in enumerate(result.found, 1):
            name = candidate.session_id
            scores[name] = scores.get(name, 0.0) + 1 / (_RANK_OFFSET + rank)
            first = merged.setdefault(name, candidate)
            signals = {**candidate.signals, **first.signals}
            merged[name] = first._replace(signals=signals, matches=max(first.matches, candidate.matches))
    found = [candidate._replace(score=scores[name]) for name, candidate in merged.items()]
    if sort is None:
        found.sort(key=lambda candidate: -candidate.score)
    else:
        found.sort(key=lambda candidate: candidate.time, reverse=sort == "newest")
    answering = next((result for result in results if result.found), results[0])
    return Candidates(
        found,
        answering.how,
        results[0].missing,
        max(len(found), *(result.sessions for result in results)),
        any(result.truncated for result in results),
        answering.asked,
        more=any(result.more for result in results),
    )


def fold(candidates: Candidates, limit: int) -> list[Hit]:
    """One hit per conversation, by its first candidate."""
    first: dict[str, Candidate] = {}
    matches: dict[str, int] = {}
    for candidate in candidates.found:
        first.setdefault(candidate.conversation_id, candidate)
        matches[candidate.conversation_id] = matches.get(candidate.conversation_id, 0) + candidate.matches
    chosen = list(first.values())[: max(0, limit)]
    return [candidate._replace(matches=matches[candidate.conversation_id]) for candidate in chosen]


def _count_sessions(candidates: Candidates) -> int:
    """How many sessions the candidates represent."""
    return sum((candidate.asked or 1) + candidate.repeated for candidate in candidates.found)


def _missing_everywhere(reader: IndexReader, filters: Filters, terms: Sequence[Term]) -> tuple[str, ...]:
    """The missing terms that would also be missing without the filters."""
    visible = Filters(filters.scope)
    return tuple(dict.fromkeys(term.text for term in terms if not reader.occurs(term.pattern, visible)))
