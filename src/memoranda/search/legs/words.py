"""The word leg: finds sessions by the words of the query, first strictly, then with fewer and fewer of them.

Keywords must occur together in one message; failing that, in neighbouring messages; failing that, any of them is
enough. For a question, sessions are ranked by how much of it they contain. Quoted, starred, grouped and excluded parts
are meant literally and are relaxed only if they find nothing; what is excluded stays excluded.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from memoranda.search import guidance, ranking
from memoranda.search.dates import may_name_date, time_ranges
from memoranda.search.index.postings import TITLE, And, Filters, IndexedSession, Pattern, Posting
from memoranda.search.index.tokenizer import is_unspaced
from memoranda.search.legs.leg import Candidate, Candidates, SearchContext
from memoranda.search.legs.term_fetcher import MAX_BY_TIME, AddedTerms, TermFetcher
from memoranda.search.newer_statements import put_newer_statements_first
from memoranda.search.query import Part, Query, Term, find_perspective, names_the_past
from memoranda.search.ranking import MatchedTerm, Matches, RankingContext, SessionScore
from memoranda.search.repeated_questions import RepeatedQuestions
from memoranda.search.speakers import prefer_named_speakers
from memoranda.support.lazy_dataclass import dataclass

_session_of = itemgetter(1)

# If very many messages have everything, only the newest are read.
_MAX_STRICT = 800
# How many sessions are chosen by single terms, if that is not for a list of sessions by relevance.
_FOR_TIME, _FOR_MESSAGES = 24, 12
_MAX_TIMES = 4
_MAX_FACTOR = 200
# For the first pages of a list by relevance, half as many are chosen as for the next.
_FEW = 21
# If more than this share of the chosen sessions only repeats others, more are chosen.
_MAX_REPEATED = 0.3
_MORE_FOR_REPEATED = 16
# Several sessions may belong to one conversation, so more of them are kept than requested.
_SPARE = 20
# If this many sessions have everything in one message, weaker ones are not needed.
_ENOUGH = 3
# If less than this share of a question's weight occurs in a session, the session does not answer it.
_MIN_SHARE = 0.06
# Sessions of scheduled jobs, and the factor on their scores.
BACKGROUND_SOURCES = frozenset({"cron"})
BACKGROUND = 0.6
SCHEDULED = "scheduled"
_ROLES = ("user", "assistant", "tool", "session_title")


class WordLeg:
    """Finds sessions, and for `search_messages` single messages, by the words of a query."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context

    def candidates(self, query: Query, filters: Filters, limit: int) -> Candidates:
        """The sessions of the strictest stage that finds any; ordered by time, at least the first `limit` are right."""
        return _WordSearch(self._context, query, filters).candidates(limit)

    def messages(self, query: Query, filters: Filters, limit: int, *, relax: bool) -> list[int]:
        """The ids of the messages that contain all of the query, or with `relax` most of it.

        A larger limit returns the same first messages, so that a caller can read page by page.
        """
        rows = _WordSearch(self._context, query, filters).messages(limit, relax)
        return [row.message for row in rows if row.role != TITLE]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Sessions ranked by single terms. Terms are bits, in the order of `texts`."""

    scores: list[SessionScore]
    texts: tuple[str, ...]
    """The terms that occur."""
    missing: tuple[Term, ...]
    sessions: int
    share: float
    """How much of the query's weight occurs anywhere."""
    complete: bool

    @property
    def full(self) -> int:
        return (1 << len(self.texts)) - 1


class _WordSearch:
    """One query under one set of filters, in stages; a stage runs only if the one before found nothing."""

    def __init__(self, context: SearchContext, query: Query, filters: Filters) -> None:
        self._query = query
        self._sort = context.sort
        self._explain = context.explain
        self._reader = context.reader
        self._how_strict = guidance.AS_TYPED if query.exact else guidance.ALL_WORDS
        self._size = context.reader.size()
        background = BACKGROUND_SOURCES if context.sort is None else frozenset[str]()
        sources = filters.values_of("source")
        if sources is not None and sources <= background:
            background = frozenset()
        self._background = background
        self._fetcher = TermFetcher(context.reader, self._size, query, filters, query.excluded, background)
        ranges = time_ranges(query.text, context.now) if may_name_date.search(query.text) else ()
        self._ranking = RankingContext(find_perspective(query.text), ranges)
        self._asked: Counter[str] = Counter()
        self._factor = 1
        self._questions = RepeatedQuestions(query, context.reader, context.sort is None and not query.exact)

    def candidates(self, limit: int) -> Candidates:
        self._factor = 1 if limit <= _FEW else 2
        found = None
        if self._query.alternatives and self._sort is None:
            found = self._any_word()
        elif not self._query.question or self._query.exact:
            found = self._strict(limit)
            few = len(found.found) < _ENOUGH if found else False
            if found and all(candidate.asked or (few and candidate.repeated) for candidate in found.found):
                found = None  # What repeated questions and answers repeat may contain less.
        return found or self._relax(limit)

    def messages(self, limit: int, relax: bool) -> list[Posting]:
        if not relax:
            return self._all_messages(limit)
        fetched = self._fetcher.terms(self._query.terms, min(_MAX_FACTOR, _FOR_MESSAGES + limit // 25))
        adjacent = self._fetcher.adjacent(fetched)
        scored = ranking.score_messages(fetched.matches, adjacent, self._size, self._ranking)
        rows = prefer_named_speakers(self._reader, self._query, scored)
        return rows if self._sort is None else ranking.sort_by_time(rows, self._sort)

    def _all_messages(self, limit: int) -> list[Posting]:
        """The messages that contain everything; by relevance, each window of the newest is ranked by itself."""
        everything = self._whole_pattern()
        windows = max(1, -(-limit // _MAX_STRICT))
        rows = self._fetcher.postings(everything, MAX_BY_TIME if self._sort == "oldest" else windows * _MAX_STRICT)
        if self._sort is None:
            some = (rows[start : start + _MAX_STRICT] for start in range(0, len(rows), _MAX_STRICT))
            matches = map(_as_one_term, some)
            return [row for match in matches for row in ranking.rank_messages(match, (), self._size, self._ranking)]
        if self._sort == "newest" and len(rows) >= windows * _MAX_STRICT:
            rows = self._fetcher.with_later(rows, everything, ranking.sort_by_time(rows, self._sort)[:limit][-1:])
        return ranking.sort_by_time(rows, self._sort)

    def _strict(self, limit: int) -> Candidates | None:
        """The sessions with everything in one message; if those are few, also with everything in a few messages."""
        max_rows = MAX_BY_TIME if self._sort == "oldest" else _MAX_STRICT
        rows = self._fetcher.widely(self._whole_pattern(), max_rows)
        single = len(self._query.parts) == 1
        if rows and (single or _count_sessions(rows) >= _ENOUGH):
            return self._in_one_message(rows, limit)
        if single:
            return None
        ranked = self._rank_parts(self._query.parts)
        return self._with_exact_parts(ranked) if self._query.question else self._nearby(ranked, rows)

    def _in_one_message(self, rows: list[Posting], limit: int) -> Candidates:
        truncated = self._fetcher.truncated
        if self._sort == "newest" and truncated:
            first = [score.best for score in ranking.sessions_by_time(rows, self._sort)[: limit + _SPARE]]
            rows = self._fetcher.with_later(rows, self._whole_pattern(), first[-1:] if len(first) >= limit else ())
        if self._sort is None:
            scores = self._rank_rows(rows)
        else:
            # Results ordered by time need a score only for an explanation.
            scored = self._rank_rows(rows, every=True) if self._explain else []
            scores = ranking.sessions_by_time(rows, self._sort, scored)
        return self._candidates(scores, self._how_strict, (), _count_sessions(rows), truncated)

    def _nearby(self, ranked: _Ranked, rows: list[Posting]) -> Candidates | None:
        """The sessions with everything in neighbouring messages, then the few with everything in one message."""
        scores = [score for score in ranked.scores if ranked.complete and score.near == ranked.full]
        seen = {score.session for score in scores}
        if rows:
            scores += [score for score in self._rank_rows(rows) if score.session not in seen]
        how = self._how_strict if rows else guidance.NEARBY
        kept = ranking.keep_well_matching(scores, self._sort) if scores else []
        return self._candidates(kept, how, (), len(scores)) if kept else None

    def _with_exact_parts(self, ranked: _Ranked) -> Candidates | None:
        """For a sentence: the sessions that have at least its quoted, starred and grouped parts."""
        exact = {part.text for part in self._query.parts if part.exact}
        needed = sum(1 << bit for bit, text in enumerate(ranked.texts) if text in exact)
        if needed.bit_count() < len(exact):
            return None
        kept = [score for score in ranked.scores if score.near & needed == needed]
        best = ranking.keep_well_matching(kept, self._sort) if kept else []
        return self._candidates(best, self._describe(ranked, kept), ranked.missing, len(kept)) if best else None

    def _any_word(self) -> Candidates | None:
        ranked = self._rank_parts(self._query.leaves)
        found = self._candidates(ranked.scores, guidance.ANY_WORD, ranked.missing, ranked.sessions)
        return found if ranked.scores else None

    def _relax(self, limit: int) -> Candidates:
        """Searches by single terms: the more of their weight a session contains, the better."""
        # Groups are ignored here, so what a group excludes is excluded everywhere.
        self._fetcher = replace(self._fetcher, excluded=self._query.unwanted)
        ranked = self._rank(self._query.terms)
        found = ranked.scores
        if not found or ranked.share * max(score.signals["coverage"] for score in found) < _MIN_SHARE:
            return Candidates((), guidance.NOT_FOUND, ranked.missing)
        how = (guidance.NOT_EXACT if self._query.exact else "") + self._describe(ranked, found)
        kept = ranking.keep_well_matching(found, self._sort)
        if self._sort is not None:
            kept = self._with_earlier_or_later(kept, limit)
        return self._candidates(kept, how, ranked.missing, ranked.sessions)

    def _with_earlier_or_later(self, kept: list[SessionScore], limit: int) -> list[SessionScore]:
        """Adds sessions that come before the last of those wanted, but were not among the chosen ones."""
        best = {score.session: score for score in kept}
        for _ in range(_MAX_TIMES):
            if self._fetcher.complete:
                break
            last = kept[:limit][-1].best.time
            filters = self._fetcher.filters
            filters = replace(filters, since=last) if self._sort == "newest" else replace(filters, until=last)
            self._fetcher = replace(self._fetcher, filters=filters)
            for score in self._rank(self._query.terms).scores:
                if score.session not in best or score.score > best[score.session].score:
                    best[score.session] = score
            kept = ranking.keep_well_matching(list(best.values()), self._sort)
        return kept

    def _candidates(
        self, scores: Sequence[SessionScore], how: str, missing: tuple[Term, ...], total: int, truncated: bool = False
    ) -> Candidates:
        sessions = self._reader.sessions([score.session for score in scores])
        if any(session.source in self._background for session in sessions.values()):
            scores = self._lower_background(scores, sessions)
        # A name in pieces ("heron.port_of") asks for no fact; a text without spaces is in pieces, too.
        has_words = any(len(part.tokens) == 1 or any(map(is_unspaced, part.tokens)) for part in self._query.parts)
        if self._sort is None and has_words and not self._query.exact and not names_the_past(self._query.text):
            jobs = {number for number, session in sessions.items() if session.source in self._background}
            scores = put_newer_statements_first(self._reader, self._query.text, scores, jobs)
        found = [
            Candidate(
                session_id=session.id,
                conversation_id=session.conversation_id,
                source=session.source,
                message_id=None if score.best.role == TITLE else score.best.message,
                role=_ROLES[score.best.role],
                time=score.best.time,
                score=score.score,
                signals=score.signals,
                matches=score.matches,
                asked=score.asked,
                repeated=score.repeated,
                messages=score.messages,
            )
            for score in scores
            if (session := sessions.get(score.session)) is not None
        ]
        return Candidates(found, how, missing, total, truncated, self._asked, more=not self._fetcher.complete)

    def _lower_background(
        self, scores: Sequence[SessionScore], sessions: Mapping[int, IndexedSession]
    ) -> list[SessionScore]:
        """Lowers the scores of scheduled jobs: they say the same again and again, and people look for what people said.

        A job comes after every conversation that has all of its words, and before those that match much worse.
        """
        jobs = {number for number, session in sessions.items() if session.source in self._background}
        people = [score for score in scores if score.session not in jobs]
        lowered: list[SessionScore] = []
        for score in scores:
            if score.session in jobs:
                as_good = (other.score for other in people if other.near & score.near == score.near)
                lower = min((score.score * BACKGROUND, *as_good))
                lowered.append(score._replace(score=lower, signals={**score.signals, SCHEDULED: BACKGROUND}))
            else:
                lowered.append(score)
        return sorted(lowered, key=lambda score: (-score.score, score.session in jobs))

    def _describe(self, ranked: _Ranked, kept: Sequence[SessionScore]) -> str:
        best = max(kept, key=lambda score: score.score)
        if best.whole != ranked.full or not ranked.complete:
            texts = (text for bit, text in enumerate(ranked.texts) if best.whole >> bit & 1)
            return guidance.SOME_WORDS + ", ".join(texts)
        if any(part.small for part in self._query.leaves):
            return guidance.WITHOUT_SMALL
        if best.own == ranked.full:
            return guidance.ALL_WORDS
        return guidance.NEARBY if best.near == ranked.full else guidance.SPREAD

    def _whole_pattern(self) -> Pattern:
        patterns = tuple(part.pattern for part in self._query.parts)
        return patterns[0] if len(patterns) == 1 else And(patterns)

    def _rank_rows(self, rows: list[Posting], *, every: bool = False) -> list[SessionScore]:
        ranked = self._questions.rank(_as_one_term(rows), (), self._size, self._ranking, every=every)
        self._asked |= Counter({term.text: count for term in self._query.terms for count in ranked.asked})
        return ranked.scores

    def _rank_parts(self, parts: Sequence[Part]) -> _Ranked:
        """Ranks sessions by whole parts."""
        return self._rank([Term(part.text, part.pattern) for part in parts])

    def _rank(self, terms: Sequence[Term]) -> _Ranked:
        """Ranks the sessions that were chosen by single terms."""
        ranked = self._rank_chosen(terms, self._factor if self._sort is None else _FOR_TIME)
        repeated = sum(score.asked + score.repeated for score in ranked.scores)
        if repeated > _MAX_REPEATED * ranked.sessions and not self._fetcher.complete and self._sort is None:
            return self._rank_chosen(terms, _MORE_FOR_REPEATED)
        return ranked

    def _rank_chosen(self, terms: Sequence[Term], factor: int) -> _Ranked:
        added = None
        if self._query.question and terms is self._query.terms:
            sentence = any(part.small for part in self._query.leaves)
            added = AddedTerms(self._query.text, self._fetcher.filters, self._reader, sentence)
        fetched = self._fetcher.terms(terms, factor, added)
        matches, typed = fetched.matches, fetched.matches.typed
        # The fetcher has already chosen the sessions.
        ranked = self._questions.rank(
            matches, self._fetcher.adjacent(fetched), self._size, self._ranking, fetched.every, every=True
        )
        sessions = len({row[1] for row, mask in matches.rows if mask & typed})
        texts = tuple(term.text for term in fetched.typed)
        share = ranking.occurring_share(matches, fetched.absent, self._size)
        self._asked |= Counter(dict(zip(texts, ranked.asked, strict=False)))
        return _Ranked(ranked.scores, texts, tuple(fetched.absent), sessions, share, len(texts) == len(terms))


def _as_one_term(rows: Sequence[Posting]) -> Matches:
    """Messages that have everything: the query as one term."""
    return Matches([MatchedTerm(len(rows))], [(row, 1) for row in rows])


def _count_sessions(rows: Sequence[Posting]) -> int:
    return len(set(map(_session_of, rows)))
