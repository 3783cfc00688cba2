"""One search in one view of the index: which stage answers, and with what."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from memoranda.index.postings import And, Filters, Or, Pattern, Phrase, Posting, Without
from memoranda.index.reader import IndexReader
from memoranda.recall.by_time import Sort, by_time, in_order, well_matching
from memoranda.recall.dates import time_ranges
from memoranda.recall.query import Part, Query, Term
from memoranda.recall.ranking import (
    AdjacentTerms,
    RankingContext,
    SessionScore,
    TermMatches,
    rank,
    rank_messages,
    weight,
)
from memoranda.recall.words import find_perspective

_session_of = itemgetter(1)

ALL_WORDS = "all words"
NEARBY = "all words, in neighbouring messages"
SPREAD = "all words, spread over the conversation"
AS_TYPED = "exactly as typed"
ANY_WORD = "any of the words"
WITHOUT_SMALL = "without common words"
NOT_FOUND = "nothing found"
SOME_WORDS = "some words: "
NOT_EXACT = "not exactly as typed; "

# Only the newest of very many matches are looked at: of everything together, of the single terms, of common terms
# beside rarer ones, of two terms side by side.
_MOST_STRICT = 800
_MOST_LOOKED_AT = 3_000
_MOST_BESIDE = 2_000
_LEAST_BESIDE = 50
_LEAST_PER_PART = 500
# A filter that lets less through makes common terms rare.
_NARROW = 0.2
_MOST_PER_PAIR = 300
_MOST_BY_TIME = 100_000
_MOST_FLOODED = 20_000
_FEW_SESSIONS = 10
# A session has a share of what is looked at; where more than this part is beyond the shares, the others are flooded.
_SHARES = 16
_FLOOD = 0.5
# Sessions may be of one conversation, so more of them are looked at than are asked for.
_SPARE = 20
# So many conversations with everything in one message need no company of weaker ones.
_ENOUGH = 3
# A question of which so little was ever said is not answered by what has that little.
_LEAST_SHARE = 0.06


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage found: sessions in order, in words how, terms that it did not find, and how many sessions match."""

    scores: Sequence[SessionScore]
    how: str
    missing: tuple[Term, ...] = ()
    sessions: int = 0
    more: bool = False
    """Whether there were more matches than were looked at."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    scores: list[SessionScore]
    texts: tuple[str, ...]
    """By bit: only the terms that occur."""
    missing: tuple[Term, ...]
    sessions: int
    share: float
    """How much of the query's weight occurs anywhere."""
    complete: bool
    """Whether there is a bit for every term."""

    @property
    def full(self) -> int:
        return (1 << len(self.texts)) - 1


class Finding:
    """Asks the reader stage by stage; a stage that finds nothing hands over to the next."""

    def __init__(
        self, reader: IndexReader, query: Query, filters: Filters, now: float, *, thorough: bool = False
    ) -> None:
        """`thorough` looks at many more matches of single terms; for filters that let only a few through."""
        self._reader = reader
        self._query = query
        self._filters = filters
        self._excluded = query.excluded
        self._thorough = thorough
        self._cut = False
        """Whether there were more matches than were looked at."""
        self._size = reader.size()
        self._context = RankingContext(find_perspective(query.text), time_ranges(query.text, now), now)

    def conversations(self, limit: int, sort: Sort | None, *, explain: bool = False) -> Outcome:
        """The sessions that match, by the strictest stage that finds any; ordered by time, the first `limit` for sure.

        What is ordered by time alone need not be scored, and is scored only when it is to be explained.
        """
        query = self._query
        outcome = None
        if query.alternatives and sort is None:
            outcome = self._alternatives()
        elif not query.question or query.exact:
            outcome = self._strict(limit, sort, explain=explain)
        if outcome is None:
            outcome = self._relaxed(limit, sort)
        return outcome

    def messages(self, most: int, sort: Sort | None) -> list[Posting]:
        """The messages that hold everything, or where there are none, those that hold most of it.

        However many are asked for, the first of them are the same, so that a reader can go on from page to page.
        """
        rows = self._all_messages(most, sort)
        if not rows:
            fetched, _ = self._fetch(self._query.terms)
            rows = self._rank_messages(list(fetched.values()), self._pairs(list(fetched))) if fetched else []
            rows = rows if sort is None else in_order(rows, sort)
        return rows

    def _all_messages(self, most: int, sort: Sort | None) -> list[Posting]:
        """The messages that hold everything; by relevance, the best of the newest come first, then those behind."""
        everything = self._everything()
        windows = max(1, -(-most // _MOST_STRICT))
        rows = self._postings(everything, _MOST_BY_TIME if sort == "oldest" else windows * _MOST_STRICT)
        if sort is None:
            some = (rows[start : start + _MOST_STRICT] for start in range(0, len(rows), _MOST_STRICT))
            return [row for each in some for row in self._rank_messages([TermMatches(each, len(each))])]
        if sort == "newest" and len(rows) >= windows * _MOST_STRICT:
            rows = self._with_later(rows, everything, in_order(rows, sort)[:most][-1:])
        return in_order(rows, sort)

    def _rank_messages(self, matched: Sequence[TermMatches], pairs: Sequence[AdjacentTerms] = ()) -> list[Posting]:
        return rank_messages(matched, pairs, self._size, self._context)

    def _strict(self, limit: int, sort: Sort | None, *, explain: bool) -> Outcome | None:
        """Everything in one message; if that is rare, everything within a few messages. None when there is nothing."""
        most = _MOST_BY_TIME if sort == "oldest" else _MOST_STRICT
        found = self._widely(self._everything(), most)
        more = self._cut
        how = AS_TYPED if self._query.exact else ALL_WORDS
        if len(set(map(_session_of, found))) >= _ENOUGH or (found and len(self._query.parts) == 1):
            if sort == "newest" and more:
                first = [each.best for each in by_time(found, sort)[: limit + _SPARE]]
                found = self._with_later(found, self._everything(), first[-1:] if len(first) >= limit else ())
            sessions = len(set(map(_session_of, found)))
            if sort is None:
                return Outcome(self._rank_rows(found), how, (), sessions, more)
            scored = self._rank_rows(found, every=True) if explain else []
            return Outcome(by_time(found, sort, scored), how, (), sessions, more)
        if len(self._query.parts) == 1:
            return None
        ranked = self._rank_parts(self._query.parts)
        if self._query.question:
            return self._with_the_exact(ranked, sort)
        full = [each for each in ranked.scores if ranked.complete and each.near == ranked.full]
        seen = {each.session for each in full}
        full += [each for each in self._rank_rows(found) if each.session not in seen] if found else []
        return Outcome(well_matching(full, sort), how if found else NEARBY, (), len(full)) if full else None

    def _with_the_exact(self, ranked: _Ranked, sort: Sort | None) -> Outcome | None:
        """Of a sentence, the conversations that have at least what was meant as it stands."""
        exact = {part.text for part in self._query.parts if part.exact}
        need = sum(1 << place for place, text in enumerate(ranked.texts) if text in exact)
        if need.bit_count() < len(exact):
            return None
        kept = [each for each in ranked.scores if each.near & need == need]
        return (
            Outcome(well_matching(kept, sort), self._in_words(ranked, kept), ranked.missing, len(kept))
            if kept
            else None
        )

    def _alternatives(self) -> Outcome | None:
        ranked = self._rank_parts(self._query.leaves)
        if not ranked.scores:
            return None
        return Outcome(ranked.scores, ANY_WORD, ranked.missing, ranked.sessions)

    def _relaxed(self, limit: int, sort: Sort | None) -> Outcome:
        """By the single terms: the more of their weight a conversation holds, the better."""
        # What is left out of a group has no group any more to be left out of.
        self._excluded = self._query.unwanted
        ranked = self._rank_terms(self._query.terms)
        found = ranked.scores
        if not found or ranked.share * max(each.signals["coverage"] for each in found) < _LEAST_SHARE:
            return Outcome((), NOT_FOUND, ranked.missing)
        how = self._in_words(ranked, found)
        if self._query.exact:
            how = NOT_EXACT + how
        kept = well_matching(found, sort)
        if sort == "newest" and self._cut:
            kept = self._with_later_sessions(found, kept, limit + _SPARE)
        return Outcome(kept, how, ranked.missing, ranked.sessions)

    def _with_later_sessions(
        self, found: list[SessionScore], kept: list[SessionScore], most: int
    ) -> list[SessionScore]:
        """The newest of what was ranked, and beside it what was said since, but recorded too long ago to be seen."""
        filters = replace(self._filters, since=kept[:most][-1].best.time)
        later = Finding(self._reader, self._query, filters, self._context.now, thorough=True)
        later._excluded = self._excluded
        best = {each.session: each for each in found}
        for each in later._rank_terms(self._query.terms).scores:
            if each.session not in best or each.score > best[each.session].score:
                best[each.session] = each
        return well_matching(list(best.values()), "newest")

    def _in_words(self, ranked: _Ranked, kept: Sequence[SessionScore]) -> str:
        best = max(kept, key=lambda each: each.score)
        if best.whole != ranked.full or not ranked.complete:
            return SOME_WORDS + ", ".join(text for place, text in enumerate(ranked.texts) if best.whole >> place & 1)
        if any(part.small for part in self._query.leaves):
            return WITHOUT_SMALL
        return ALL_WORDS if best.own == ranked.full else NEARBY if best.near == ranked.full else SPREAD

    def _everything(self) -> Pattern:
        patterns = tuple(part.pattern for part in self._query.parts)
        return patterns[0] if len(patterns) == 1 else And(patterns)

    def _rank_rows(self, found: list[Posting], *, every: bool = False) -> list[SessionScore]:
        return rank([TermMatches(found, len(found))], (), self._size, self._context, every=every)

    def _rank_parts(self, parts: Sequence[Part]) -> _Ranked:
        """By whole parts, each looked for everywhere."""
        terms = [Term(part.text, part.pattern) for part in parts]
        most = max(_LEAST_PER_PART, _MOST_LOOKED_AT // len(terms))
        found: dict[Term, TermMatches] = {}
        for term in terms:
            if rows := self._widely(term.pattern, most):
                frequency = len(rows) if len(rows) < most else self._reader.frequency(term.pattern)
                found[term] = TermMatches(rows, max(frequency, len(rows)))
        return self._rank(terms, found, [term for term in terms if term not in found], ())

    def _rank_terms(self, terms: Sequence[Term]) -> _Ranked:
        found, absent = self._fetch(terms)
        return self._rank(terms, found, absent, self._pairs([term for term in terms if term in found]))

    def _rank(
        self,
        terms: Sequence[Term],
        found: Mapping[Term, TermMatches],
        absent: Sequence[Term],
        pairs: Sequence[AdjacentTerms],
    ) -> _Ranked:
        kept = [term for term in terms if term in found]
        matched = [found[term] for term in kept]
        scores = rank(matched, pairs, self._size, self._context, every=self._thorough) if matched else []
        sessions = len(set().union(*(map(_session_of, each.postings) for each in matched)))
        return _Ranked(
            scores,
            tuple(term.text for term in kept),
            tuple(absent),
            sessions,
            self._share(found, absent),
            len(kept) == len(terms),
        )

    def _share(self, found: Mapping[Term, TermMatches], absent: Sequence[Term]) -> float:
        """How much of the weight of the terms occurs at all."""
        messages = self._size.messages
        there = sum(weight(each.frequency, messages, framing=each.framing) for each in found.values())
        return there / (there + sum(weight(0, messages, framing=term.framing) for term in absent) or 1.0)

    def _fetch(self, terms: Sequence[Term]) -> tuple[dict[Term, TermMatches], list[Term]]:
        """Where the terms are, and those that are nowhere.

        The rarer ones are fetched everywhere; the common and the framing ones only beside these, unless the filter
        lets so little through that nothing is common.
        """
        counts = {term: self._reader.frequency(term.pattern) for term in terms}
        found: dict[Term, TermMatches] = {}
        absent = [term for term in terms if not counts[term]]
        leading: list[Pattern] = []
        most_looked_at = _MOST_FLOODED if self._thorough else _MOST_LOOKED_AT
        left, left_beside = most_looked_at, _MOST_FLOODED if self._thorough else _MOST_BESIDE
        passed, asked = 0, 0
        for term in sorted((term for term in terms if counts[term]), key=lambda term: (term.framing, counts[term])):
            count, pattern = counts[term], term.pattern
            narrow = passed < _NARROW * min(asked, most_looked_at)
            beside = bool(leading) and not narrow and (term.framing or count > left)
            if beside:
                most = max(left_beside, _LEAST_BESIDE)
                rows = self._postings(And((pattern, Or(tuple(leading)))), most)
                left_beside -= len(rows)
                self._cut = self._cut or len(rows) >= most
            else:
                rows = self._widely(pattern, most_looked_at)
                left -= len(rows)
                passed += len(rows)
                asked += count
                leading.append(pattern)
            if rows:
                found[term] = TermMatches(rows, max(count, len(rows)), term.framing)
            elif not beside:
                absent.append(term)
        return found, absent

    def _pairs(self, terms: Sequence[Term]) -> list[AdjacentTerms]:
        places = {term.token: place for place, term in enumerate(terms)}
        found = []
        for pair in self._query.pairs:
            telling = tuple(places[token] for token in pair if token in places)
            rows = self._postings(Phrase(pair), _MOST_PER_PAIR) if telling else []
            if rows:
                found.append(AdjacentTerms(telling, rows))
        return found

    def _widely(self, pattern: Pattern, most: int) -> list[Posting]:
        """The newest matches; more when they are of few sessions, or when few of these take the room of the others."""
        found = self._postings(pattern, most)
        full = len(found) >= most
        if full and most < _MOST_FLOODED:
            share = max(1, most // _SHARES)
            counts = Counter(map(_session_of, found))
            few = len(counts) < _FEW_SESSIONS
            if few or sum(count - share for count in counts.values() if count > share) > _FLOOD * most:
                wider = self._postings(pattern, _MOST_FLOODED)
                full = len(wider) >= _MOST_FLOODED
                found = wider if few else found + _shares(wider[most:], counts, share)
        self._cut = self._cut or full
        return found

    def _with_later(self, found: list[Posting], pattern: Pattern, last: Sequence[Posting]) -> list[Posting]:
        """What was recorded last, with all that was said since the last of these, or with everything."""
        filters = replace(self._filters, since=last[0].time) if last else self._filters
        return list(dict.fromkeys([*found, *self._postings(pattern, _MOST_BY_TIME, filters)]))

    def _postings(self, pattern: Pattern, most: int, filters: Filters | None = None) -> list[Posting]:
        if self._excluded is not None:
            pattern = Without(pattern, self._excluded)
        return self._reader.postings(pattern, filters or self._filters, most)


def _shares(rows: Sequence[Posting], counts: Counter[int], share: int) -> list[Posting]:
    """Of every session as many as are still missing to its share."""
    kept = []
    for row in rows:
        if counts[row.session] < share:
            counts[row.session] += 1
            kept.append(row)
    return kept
