"""One search in one view of the index: which stage answers, and with what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from memoranda.index.postings import And, Filter, Or, Pattern, Phrase, Posting, Without
from memoranda.index.reader import Reader
from memoranda.recall.dates import stretches
from memoranda.recall.query import Part, Query, Term
from memoranda.recall.ranking import Matched, Outlook, Pair, Standing, rank, rank_messages, weight
from memoranda.recall.words import perspective

Sort = Literal["newest", "oldest"]
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
_MOST_OLDEST = 100_000
_MOST_FLOODED = 20_000
_FEW_SESSIONS = 10
# So many conversations with everything in one message need no company of weaker ones.
_ENOUGH = 3
# A question of which so little was ever said is not answered by what has that little.
_LEAST_SHARE = 0.06
# Ordered by time, what matches far worse than the best is left out.
_LEAST_OF_BEST = 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage found: sessions in order, in words how, terms that occur nowhere, and how many sessions match."""

    standings: Sequence[Standing]
    how: str
    missing: tuple[str, ...] = ()
    sessions: int = 0
    more: bool = False
    """Whether there were more matches than were looked at."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    standings: list[Standing]
    texts: tuple[str, ...]
    """By bit: only the terms that occur."""
    missing: tuple[str, ...]
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

    def __init__(self, reader: Reader, query: Query, among: Filter, now: float) -> None:
        self._reader = reader
        self._query = query
        self._among = among
        self._excluded = query.excluded
        self._size = reader.size()
        self._outlook = Outlook(perspective(query.text), stretches(query.text, now), now)

    def conversations(self, limit: int, sort: Sort | None) -> Outcome:
        """The sessions that match, by the strictest stage that finds any."""
        query = self._query
        outcome = None
        if query.alternatives and sort is None:
            outcome = self._alternatives()
        elif not query.question or query.exact:
            outcome = self._strict(_ENOUGH, sort)
        if outcome is None:
            outcome = self._relaxed(sort)
        return outcome

    def messages(self, most: int, sort: Sort | None) -> list[Posting]:
        """The messages that hold everything, or where there are none, those that hold most of it."""
        rows = self._postings(self._everything(), _MOST_OLDEST if sort == "oldest" else max(most, _MOST_STRICT))
        if rows:
            found = rank_messages([Matched(rows, len(rows))], (), self._size, self._outlook) if sort is None else rows
        else:
            fetched, _ = self._fetch(self._query.terms)
            found = (
                rank_messages(list(fetched.values()), self._pairs(list(fetched)), self._size, self._outlook)
                if fetched
                else []
            )
        if sort is not None:
            found.sort(key=lambda row: (row.time, row.message), reverse=sort == "newest")
        return found

    def _strict(self, enough: int, sort: Sort | None) -> Outcome | None:
        """Everything in one message; if that is rare, everything within a few messages. None when there is nothing."""
        found = self._widely(self._everything(), _MOST_OLDEST if sort == "oldest" else _MOST_STRICT)
        sessions = len({row.session for row in found})
        how = AS_TYPED if self._query.exact else ALL_WORDS
        if sessions >= enough or (found and len(self._query.parts) == 1):
            if sort is not None:
                return Outcome(_by_time(found, sort), how, (), sessions)
            return Outcome(self._rank_rows(found), how, (), sessions, len(found) >= _MOST_STRICT)
        if len(self._query.parts) == 1:
            return None
        ranked = self._rank_parts(self._query.parts)
        if self._query.question:
            return self._with_the_exact(ranked, sort)
        full = [each for each in ranked.standings if ranked.complete and each.near == ranked.full]
        seen = {each.session for each in full}
        full += [each for each in self._rank_rows(found) if each.session not in seen] if found else []
        return Outcome(_sorted(full, sort), how if found else NEARBY, (), len(full)) if full else None

    def _with_the_exact(self, ranked: _Ranked, sort: Sort | None) -> Outcome | None:
        """Of a sentence, the conversations that have at least what was meant as it stands."""
        exact = {part.text for part in self._query.parts if part.exact}
        need = sum(1 << place for place, text in enumerate(ranked.texts) if text in exact)
        if need.bit_count() < len(exact):
            return None
        kept = [each for each in ranked.standings if each.near & need == need]
        return Outcome(_sorted(kept, sort), self._in_words(ranked, kept), ranked.missing, len(kept)) if kept else None

    def _alternatives(self) -> Outcome | None:
        ranked = self._rank_parts(self._query.leaves)
        if not ranked.standings:
            return None
        return Outcome(ranked.standings, ANY_WORD, ranked.missing, ranked.sessions)

    def _relaxed(self, sort: Sort | None) -> Outcome:
        """By the single terms: the more of their weight a conversation holds, the better."""
        # What is left out of a group has no group any more to be left out of.
        self._excluded = self._query.unwanted
        ranked = self._rank_terms(self._query.terms)
        found = ranked.standings
        if not found or ranked.share * max(each.signals["coverage"] for each in found) < _LEAST_SHARE:
            return Outcome((), NOT_FOUND, ranked.missing)
        how = self._in_words(ranked, found)
        if self._query.exact:
            how = NOT_EXACT + how
        return Outcome(_sorted(found, sort), how, ranked.missing, ranked.sessions)

    def _in_words(self, ranked: _Ranked, kept: Sequence[Standing]) -> str:
        best = max(kept, key=lambda each: each.score)
        if best.whole != ranked.full or not ranked.complete:
            return SOME_WORDS + ", ".join(text for place, text in enumerate(ranked.texts) if best.whole >> place & 1)
        if any(part.small for part in self._query.leaves):
            return WITHOUT_SMALL
        return ALL_WORDS if best.own == ranked.full else NEARBY if best.near == ranked.full else SPREAD

    def _everything(self) -> Pattern:
        patterns = tuple(part.pattern for part in self._query.parts)
        return patterns[0] if len(patterns) == 1 else And(patterns)

    def _rank_rows(self, found: list[Posting]) -> list[Standing]:
        return rank([Matched(found, len(found))], (), self._size, self._outlook)

    def _rank_parts(self, parts: Sequence[Part]) -> _Ranked:
        """By whole parts, each looked for everywhere."""
        terms = [Term(part.text, part.pattern) for part in parts]
        most = max(_LEAST_PER_PART, _MOST_LOOKED_AT // len(terms))
        found: dict[Term, Matched] = {}
        for term in terms:
            if rows := self._widely(term.pattern, most):
                frequency = len(rows) if len(rows) < most else self._reader.frequency(term.pattern)
                found[term] = Matched(rows, max(frequency, len(rows)))
        return self._rank(terms, found, [term for term in terms if term not in found], ())

    def _rank_terms(self, terms: Sequence[Term]) -> _Ranked:
        found, absent = self._fetch(terms)
        return self._rank(terms, found, absent, self._pairs([term for term in terms if term in found]))

    def _rank(
        self, terms: Sequence[Term], found: Mapping[Term, Matched], absent: Sequence[Term], pairs: Sequence[Pair]
    ) -> _Ranked:
        kept = [term for term in terms if term in found]
        matched = [found[term] for term in kept]
        standings = rank(matched, pairs, self._size, self._outlook) if matched else []
        sessions = len(set().union(*(map(_session_of, each.postings) for each in matched)))
        return _Ranked(
            standings,
            tuple(term.text for term in kept),
            tuple(dict.fromkeys(term.text for term in absent)),
            sessions,
            self._share(found, absent),
            len(kept) == len(terms),
        )

    def _share(self, found: Mapping[Term, Matched], absent: Sequence[Term]) -> float:
        """How much of the weight of the terms occurs at all."""
        messages = self._size.messages
        there = sum(weight(each.frequency, messages, framing=each.framing) for each in found.values())
        return there / (there + sum(weight(0, messages, framing=term.framing) for term in absent) or 1.0)

    def _fetch(self, terms: Sequence[Term]) -> tuple[dict[Term, Matched], list[Term]]:
        """Where the terms are, and those that are nowhere.

        The rarer ones are fetched everywhere; the common and the framing ones only beside these, unless the filter
        lets so little through that nothing is common.
        """
        counts = {term: self._reader.frequency(term.pattern) for term in terms}
        found: dict[Term, Matched] = {}
        absent = [term for term in terms if not counts[term]]
        leading: list[Pattern] = []
        left, left_beside, passed, asked = _MOST_LOOKED_AT, _MOST_BESIDE, 0, 0
        for term in sorted((term for term in terms if counts[term]), key=lambda term: (term.framing, counts[term])):
            count, pattern = counts[term], term.pattern
            narrow = passed < _NARROW * min(asked, _MOST_LOOKED_AT)
            beside = bool(leading) and not narrow and (term.framing or count > left)
            if beside:
                rows = self._postings(And((pattern, Or(tuple(leading)))), max(left_beside, _LEAST_BESIDE))
                left_beside -= len(rows)
            else:
                rows = self._widely(pattern, _MOST_LOOKED_AT)
                left -= len(rows)
                passed += len(rows)
                asked += count
                leading.append(pattern)
            if rows:
                found[term] = Matched(rows, max(count, len(rows)), term.framing)
            elif not beside:
                absent.append(term)
        return found, absent

    def _pairs(self, terms: Sequence[Term]) -> list[Pair]:
        places = {term.token: place for place, term in enumerate(terms)}
        found = []
        for pair in self._query.pairs:
            telling = tuple(places[token] for token in pair if token in places)
            rows = self._postings(Phrase(pair), _MOST_PER_PAIR) if telling else []
            if rows:
                found.append(Pair(telling, rows))
        return found

    def _widely(self, pattern: Pattern, most: int) -> list[Posting]:
        """The newest matches; more of them when a few sessions would otherwise hide all others."""
        found = self._postings(pattern, most)
        if most <= len(found) < _MOST_FLOODED and len(set(map(_session_of, found))) < _FEW_SESSIONS:
            found = self._postings(pattern, _MOST_FLOODED)
        return found

    def _postings(self, pattern: Pattern, most: int) -> list[Posting]:
        if self._excluded is not None:
            pattern = Without(pattern, self._excluded)
        found = self._reader.postings(pattern, self._among, most)
        return found


def _by_time(found: list[Posting], sort: Sort) -> list[Standing]:
    """Each session by its newest or oldest match."""
    newest = sort == "newest"
    first: dict[int, Posting] = {}
    counts: dict[int, int] = {}
    for row in sorted(found, key=lambda row: (row.time, row.message), reverse=newest):
        first.setdefault(row.session, row)
        counts[row.session] = counts.get(row.session, 0) + 1
    return [Standing(session, 0.0, row, 1, 1, 1, counts[session], {}) for session, row in first.items()]


def _sorted(standings: list[Standing], sort: Sort | None) -> list[Standing]:
    if sort is None or not standings:
        return standings
    least = _LEAST_OF_BEST * max(each.score for each in standings)
    kept = [each for each in standings if each.score >= least]
    return sorted(kept, key=lambda each: each.best.time, reverse=sort == "newest")
