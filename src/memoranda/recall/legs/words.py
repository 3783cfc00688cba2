"""The word leg: finds sessions by the words of the query, first strictly, then with fewer and fewer of them.

Keywords must occur together in one message; failing that, in neighbouring messages; failing that, any of them is
enough. For a question, sessions are ranked by how much of it they contain. Quoted, starred, grouped and excluded parts
are meant literally and are relaxed only if they find nothing; what is excluded stays excluded.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from memoranda.index.postings import TITLE, And, Filters, Or, Pattern, Phrase, Posting, Without
from memoranda.index.reader import IndexReader
from memoranda.recall import guidance, ranking
from memoranda.recall.dates import may_name_date, time_ranges
from memoranda.recall.legs.added_terms import AddedTerms
from memoranda.recall.legs.leg import Candidate, Candidates, SearchContext
from memoranda.recall.query import Part, Query, Term, find_perspective
from memoranda.recall.repeated_questions import RepeatedQuestions
from memoranda.recall.speakers import prefer_named_speakers
from memoranda.recall.term_matches import AdjacentTerms, RankingContext, SessionScore, TermMatches

_session_of = itemgetter(1)

# Only the newest of very many matches are read: of all parts together, of single terms, of common terms in messages
# with rarer ones, of two terms side by side.
_MAX_STRICT = 800
_MAX_ROWS = 3_000
_MAX_BESIDE = 2_000
_MIN_BESIDE = 50
_MIN_PER_PART = 500
# Filters that pass a smaller share make common terms rare.
_NARROW = 0.2
_MAX_PER_PAIR = 300
_MAX_BY_TIME = 100_000
_MAX_FLOODED = 20_000
_FEW_SESSIONS = 10
# Each session has a share of the rows; if more than this part exceeds the shares, a few sessions flood the others.
_SHARES = 16
_FLOOD = 0.5
# Several sessions may belong to one conversation, so more of them are kept than requested.
_SPARE = 20
# If this many sessions have everything in one message, weaker ones are not needed.
_ENOUGH = 3
# If less than this share of a question's weight occurs in a session, the session does not answer it.
_MIN_SHARE = 0.06
_ROLES = ("user", "assistant", "tool", "session_title")


class WordLeg:
    """Finds sessions, and for `search_messages` single messages, by the words of a query."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context

    def candidates(self, query: Query, filters: Filters, limit: int) -> Candidates:
        """The sessions of the strictest stage that finds any; ordered by time, at least the first `limit` are right."""
        # The index is read from the newest record backwards, and the oldest messages were mostly recorded first.
        return _WordSearch(self._context, query, filters, thorough=self._context.sort == "oldest").candidates(limit)

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

    def __init__(self, context: SearchContext, query: Query, filters: Filters, *, thorough: bool = False) -> None:
        self._query = query
        self._sort = context.sort
        self._explain = context.explain
        self._reader = context.reader
        self._how_strict = guidance.AS_TYPED if query.exact else guidance.ALL_WORDS
        self._fetcher = _Fetcher(context.reader, query, filters, query.excluded, thorough)
        self._size = context.reader.size()
        ranges = time_ranges(query.text, context.now) if may_name_date(query.text) else ()
        self._ranking = RankingContext(find_perspective(query.text), ranges, context.now)
        self._asked: Counter[str] = Counter()
        self._questions = RepeatedQuestions(query, context.reader, context.sort is None and not query.exact)

    def candidates(self, limit: int) -> Candidates:
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
        fetched, _ = self._fetcher.terms(self._query.terms)
        adjacent = self._fetcher.adjacent(list(fetched))
        scored = ranking.score_messages(list(fetched.values()), adjacent, self._size, self._ranking) if fetched else []
        rows = prefer_named_speakers(self._reader, self._query, scored)
        return rows if self._sort is None else ranking.sort_by_time(rows, self._sort)

    def _all_messages(self, limit: int) -> list[Posting]:
        """The messages that contain everything; by relevance, each window of the newest is ranked by itself."""
        everything = self._whole_pattern()
        windows = max(1, -(-limit // _MAX_STRICT))
        rows = self._fetcher.postings(everything, _MAX_BY_TIME if self._sort == "oldest" else windows * _MAX_STRICT)
        if self._sort is None:
            some = (rows[start : start + _MAX_STRICT] for start in range(0, len(rows), _MAX_STRICT))
            matches = (TermMatches(window, len(window)) for window in some)
            return [row for match in matches for row in ranking.rank_messages([match], (), self._size, self._ranking)]
        if self._sort == "newest" and len(rows) >= windows * _MAX_STRICT:
            rows = self._fetcher.with_later(rows, everything, ranking.sort_by_time(rows, self._sort)[:limit][-1:])
        return ranking.sort_by_time(rows, self._sort)

    def _strict(self, limit: int) -> Candidates | None:
        """The sessions with everything in one message; if those are few, also with everything in a few messages."""
        max_rows = _MAX_BY_TIME if self._sort == "oldest" else _MAX_STRICT
        rows = self._fetcher.widely(self._whole_pattern(), max_rows)
        single = len(self._query.parts) == 1
        if rows and (single or _count_sessions(self._questions.without(rows)) >= _ENOUGH):
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
        fetcher = replace(self._fetcher, excluded=self._query.unwanted)
        ranked = self._rank_terms(fetcher)
        found = ranked.scores
        if not found or ranked.share * max(score.signals["coverage"] for score in found) < _MIN_SHARE:
            return Candidates((), guidance.NOT_FOUND, ranked.missing)
        how = (guidance.NOT_EXACT if self._query.exact else "") + self._describe(ranked, found)
        kept = ranking.keep_well_matching(found, self._sort)
        if self._sort == "newest" and fetcher.truncated:
            kept = self._with_later_sessions(fetcher, found, kept[: limit + _SPARE])
        return self._candidates(kept, how, ranked.missing, ranked.sessions)

    def _with_later_sessions(
        self, fetcher: "_Fetcher", found: list[SessionScore], newest: list[SessionScore]
    ) -> list[SessionScore]:
        """Adds sessions that are newer than the last of the newest, but were recorded too early to be read."""
        best = {score.session: score for score in found}
        for score in self._rank_terms(fetcher.since(newest[-1].best.time)).scores:
            if score.session not in best or score.score > best[score.session].score:
                best[score.session] = score
        return ranking.keep_well_matching(list(best.values()), "newest")

    def _candidates(
        self, scores: Sequence[SessionScore], how: str, missing: tuple[Term, ...], total: int, truncated: bool = False
    ) -> Candidates:
        sessions = self._reader.sessions([score.session for score in scores])
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
        return Candidates(found, how, missing, total, truncated, self._asked)

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
        ranked = self._questions.rank([TermMatches(rows, len(rows))], (), self._size, self._ranking, every=every)
        self._asked |= Counter({term.text: count for term in self._query.terms for count in ranked.asked})
        return ranked.scores

    def _rank_parts(self, parts: Sequence[Part]) -> _Ranked:
        """Ranks sessions by whole parts, each fetched by itself."""
        terms = [Term(part.text, part.pattern) for part in parts]
        found = self._fetcher.parts(terms)
        return self._rank(self._fetcher, terms, found, [term for term in terms if term not in found], (), {})

    def _rank_terms(self, fetcher: "_Fetcher") -> _Ranked:
        terms = self._query.terms
        found, absent = fetcher.terms(terms)
        adjacent = fetcher.adjacent([term for term in terms if term in found])
        added = AddedTerms(self._query.text, fetcher.filters, self._reader, fetcher.postings)
        more = added.find(found, absent) if self._query.question else {}
        return self._rank(fetcher, terms, found, absent, adjacent, more)

    def _rank(
        self,
        fetcher: "_Fetcher",
        terms: Sequence[Term],
        found: Mapping[Term, TermMatches],
        absent: Sequence[Term],
        adjacent: Sequence[AdjacentTerms],
        added: Mapping[Term, TermMatches],
    ) -> _Ranked:
        kept = [term for term in terms if term in found]
        matches = [found[term] for term in kept]
        ranked = self._questions.rank(
            [*matches, *added.values()], adjacent, self._size, self._ranking, [*kept, *added], every=fetcher.thorough
        )
        sessions = len(set().union(*(map(_session_of, match.postings) for match in matches)))
        texts, share = tuple(term.text for term in kept), ranking.occurring_share(found.values(), absent, self._size)
        self._asked |= Counter(dict(zip(texts, ranked.asked, strict=False)))
        return _Ranked(ranked.scores, texts, tuple(absent), sessions, share, len(kept) == len(terms))


@dataclass(slots=True)
class _Fetcher:
    """Fetches the postings of one query from the index."""

    reader: IndexReader
    query: Query
    filters: Filters
    excluded: Pattern | None
    thorough: bool = False
    """Read many more matches of single terms; for filters that only a few messages pass."""
    truncated: bool = False
    """Whether a limit prevented it from reading everything."""

    def since(self, time: float) -> "_Fetcher":
        """A thorough fetcher of the messages written since then."""
        return replace(self, filters=replace(self.filters, since=time), thorough=True, truncated=False)

    def postings(self, pattern: Pattern, limit: int, filters: Filters | None = None) -> list[Posting]:
        if self.excluded is not None:
            pattern = Without(pattern, self.excluded)
        return self.reader.postings(pattern, filters or self.filters, limit)

    def widely(self, pattern: Pattern, limit: int) -> list[Posting]:
        """The newest matches; more if they come from few sessions, or if a few sessions take most of the rows."""
        found = self.postings(pattern, limit)
        full = len(found) >= limit
        if full and limit < _MAX_FLOODED:
            share = max(1, limit // _SHARES)
            counts = Counter(map(_session_of, found))
            few = len(counts) < _FEW_SESSIONS
            if few or sum(count - share for count in counts.values() if count > share) > _FLOOD * limit:
                wider = self.postings(pattern, _MAX_FLOODED)
                full = len(wider) >= _MAX_FLOODED
                found = wider if few else found + _fill_shares(wider[limit:], counts, share)
        self.truncated = self.truncated or full
        return found

    def with_later(self, rows: list[Posting], pattern: Pattern, last: Sequence[Posting]) -> list[Posting]:
        """The rows, and every match since the posting in `last`; if `last` is empty, every match."""
        filters = replace(self.filters, since=last[0].time) if last else self.filters
        return list(dict.fromkeys([*rows, *self.postings(pattern, _MAX_BY_TIME, filters)]))

    def parts(self, parts: Sequence[Term]) -> dict[Term, TermMatches]:
        """The matches of whole parts of the query, each fetched by itself; parts that occur nowhere are missing."""
        limit = max(_MIN_PER_PART, _MAX_ROWS // len(parts))
        found: dict[Term, TermMatches] = {}
        for part in parts:
            if rows := self.widely(part.pattern, limit):
                frequency = len(rows) if len(rows) < limit else self.reader.frequency(part.pattern)
                found[part] = TermMatches(rows, max(frequency, len(rows)))
        return found

    def terms(self, terms: Sequence[Term]) -> tuple[dict[Term, TermMatches], list[Term]]:
        """The matches of the terms, and the terms that occur nowhere.

        The rarer terms are fetched everywhere; common and framing terms only from messages that have a rarer one,
        unless so little passes the filters that no term is common.
        """
        counts = {term: self.reader.frequency(term.pattern) for term in terms}
        found: dict[Term, TermMatches] = {}
        absent = [term for term in terms if not counts[term]]
        leading: list[Pattern] = []
        max_rows = _MAX_FLOODED if self.thorough else _MAX_ROWS
        left, left_beside = max_rows, _MAX_FLOODED if self.thorough else _MAX_BESIDE
        passed, expected = 0, 0
        for term in sorted((term for term in terms if counts[term]), key=lambda term: (term.framing, counts[term])):
            count, pattern = counts[term], term.pattern
            narrow = passed < _NARROW * min(expected, max_rows)
            only_with_rarer = bool(leading) and not narrow and (term.framing or count > left)
            if only_with_rarer:
                limit = max(left_beside, _MIN_BESIDE)
                rows = self.postings(And((pattern, Or(tuple(leading)))), limit)
                left_beside -= len(rows)
                self.truncated = self.truncated or len(rows) >= limit
            else:
                rows = self.widely(pattern, max_rows)
                left -= len(rows)
                passed += len(rows)
                expected += count
                leading.append(pattern)
            if rows:
                found[term] = TermMatches(rows, max(count, len(rows)), term.framing, term.token)
            elif not only_with_rarer:
                absent.append(term)
        return found, absent

    def adjacent(self, terms: Sequence[Term]) -> list[AdjacentTerms]:
        """The messages in which terms are side by side as in the query."""
        numbers = {term.token: number for number, term in enumerate(terms)}
        found = []
        for pair in self.query.pairs:
            known = tuple(numbers[token] for token in pair if token in numbers)
            rows = self.postings(Phrase(pair), _MAX_PER_PAIR) if known else []
            if rows:
                found.append(AdjacentTerms(known, rows))
        return found


def _count_sessions(rows: Sequence[Posting]) -> int:
    return len(set(map(_session_of, rows)))


def _fill_shares(rows: Sequence[Posting], counts: Counter[int], share: int) -> list[Posting]:
    """The rows that fill up the share of each session."""
    kept = []
    for row in rows:
        if counts[row.session] < share:
            counts[row.session] += 1
            kept.append(row)
    return kept
