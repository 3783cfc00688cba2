"""Fetches the postings of the parts and terms of one query from the index, and of what a search adds to them.

Only a question gets additions; keywords mean what they say. Matches of related words are added (synonyms, members of a
class, words that are close in meaning), and those of standing instructions. A related word stands for the typed one in
messages that lack it, with a fraction of its weight; `ranking` says how much. It finds the message about chess for a
question about board games. Words that occur nowhere are skipped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from memoranda.memory.record.feed import FeedMessage
from memoranda.search import ranking
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import Filters, IndexSize, Pattern, Posting, Without, Word, has_phrase
from memoranda.search.index.reader import IndexReader, Wanted
from memoranda.search.index.related_words import close_words
from memoranda.search.index.sequences import phrase_bytes
from memoranda.search.index.standing_instructions import MARKERS, concerns_work, is_standing
from memoranda.search.query import Query, Term
from memoranda.search.ranking import AdjacentTerms, MaskValues, MatchedTerm, Matches, Row, count_terms, occurring_terms
from memoranda.support.lazy_dataclass import dataclass

_MAX_PER_TERM = 3


class RelatedTerm(NamedTuple):
    """A term for a related word, the token of the typed term, and how close the two are: above 0, below 1."""

    term: Term
    typed: str
    closeness: float


def possible_patterns(terms: Sequence[Term]) -> list[Pattern]:
    """What `related_terms` is likely to ask for, so that it can be read at once."""
    tokens = (term.token for term in terms if not term.framing and isinstance(term.pattern, Word))
    return [Word(word) for token in tokens for word in islice(close_words(token), 2 * _MAX_PER_TERM)]


def related_terms(terms: Sequence[Term], occurs: Callable[[Pattern], object]) -> list[RelatedTerm]:
    """The words related to the terms that occur, closest first for each term; none for framing words and phrases."""
    typed = {term.token for term in terms}
    found: dict[str, RelatedTerm] = {}
    for term in terms:
        if term.framing or not isinstance(term.pattern, Word):
            continue
        count = 0
        for word, closeness in close_words(term.token).items():
            if count == _MAX_PER_TERM:
                break
            if word in typed or not occurs(Word(word)):
                continue
            count += 1
            if word not in found or found[word].closeness < closeness:
                found[word] = RelatedTerm(Term(word, Word(word), word), term.token, closeness)
    return list(found.values())


# The weight of a standing instruction, as a share of the weight of all typed terms.
STANDING = 0.3
# Of how many messages with the marker words and the most of the terms the text is read, and how many of those may rank
# higher: more would crowd out everything else.
_MAX_READ = 20
_MAX_STANDING = 5
STANDING_TERM = Term("standing instruction", MARKERS, "standing instruction")


@dataclass(slots=True)
class AddedTerms:
    """Finds what is added to the terms of one question."""

    question: str
    filters: Filters
    reader: IndexReader
    sentence: bool
    """Whether it is a sentence; a list of words asks for no work."""

    def related(self, terms: Sequence[Term]) -> list[RelatedTerm]:
        """The words that are related to the terms and occur."""
        self.reader.prepare(possible_patterns(terms))
        return related_terms(terms, self.reader.frequency)

    def standing(self, weighted: Sequence[tuple[Pattern, float]]) -> list[Posting]:
        """The messages of the user that have the most of these patterns and are standing instructions; the best few."""
        roles = self.filters.roles
        if (
            not self.sentence
            or not weighted
            or not concerns_work(self.question)
            or (roles is not None and "user" not in roles)
        ):
            return []
        filters = replace(self.filters, roles=frozenset({"user"}), titles=False)
        best = self.reader.heaviest(weighted, MARKERS, filters, _MAX_READ)
        messages = self.reader.messages([row.message for row in best])
        kept = [row for row in best if row.message in messages and _instructs(messages[row.message])]
        return kept[:_MAX_STANDING]


def _instructs(message: FeedMessage) -> bool:
    return is_standing(searchable_text(message).text)


_session_of = itemgetter(1)

# If very many messages of scheduled jobs have everything, only the newest are read.
_MAX_BACKGROUND = 200
# A small store is ranked nearly whole.
_SMALL, _WHOLE = 2_000, 8
# Terms are common if they and the rarer ones together are in more messages than these, and more than this share of all.
_MIN_LEADING, _LEADING_SHARE = 3_000, 0.25
# Of how many messages the order of words is read to see whether two terms are side by side.
_MAX_COMPARED = 60
MAX_BY_TIME = 100_000
_MAX_FLOODED = 20_000
# Of a frequent phrase fewer are read, because their texts have to be compared with it.
_MAX_PHRASES, _MAX_FLOODED_PHRASES = 300, 2_000
_FEW_SESSIONS = 10
# Each session has a share of the rows; if more than this part exceeds the shares, a few sessions flood the others.
_SHARES = 16
_FLOOD = 0.5


@dataclass(slots=True)
class TermFetcher:
    """Fetches the postings of one query from the index."""

    reader: IndexReader
    size: IndexSize
    query: Query
    filters: Filters
    excluded: Pattern | None
    background: frozenset[str]
    truncated: bool = False
    """Whether a limit prevented it from reading everything."""
    complete: bool = True
    """Whether every session with any of the terms was chosen."""
    factor: int = 1
    """How much more was chosen than usual."""

    def postings(self, pattern: Pattern, limit: int, filters: Filters | None = None) -> list[Posting]:
        if self.excluded is not None:
            pattern = Without(pattern, self.excluded)
        return self.reader.postings(pattern, filters or self.filters, limit)

    def widely(self, pattern: Pattern, limit: int) -> list[Posting]:
        """The newest matches; more if they come from few sessions, or if a few sessions take most of the rows."""
        if not self.background:
            return self._widely(pattern, limit, self.filters)
        foreground = replace(self.filters, excluded_sources=self.filters.excluded_sources | self.background)
        background = self.filters.with_values("source", self.background - self.filters.excluded_sources)
        return self._widely(pattern, limit, foreground) + self.postings(pattern, _MAX_BACKGROUND, background)

    def _widely(self, pattern: Pattern, limit: int, filters: Filters) -> list[Posting]:
        flooded = _MAX_FLOODED
        if limit < flooded and has_phrase(pattern):
            limit, flooded = min(limit, _MAX_PHRASES), _MAX_FLOODED_PHRASES
        found = self.postings(pattern, limit, filters)
        full = len(found) >= limit
        if full and limit < flooded:
            share = max(1, limit // _SHARES)
            counts = Counter(map(_session_of, found))
            few = len(counts) < _FEW_SESSIONS
            if few or sum(count - share for count in counts.values() if count > share) > _FLOOD * limit:
                wider = self.postings(pattern, flooded, filters)
                full = len(wider) >= flooded
                found = wider if few else found + _fill_shares(wider[limit:], counts, share)
        self.truncated = self.truncated or full
        return found

    def with_later(self, rows: list[Posting], pattern: Pattern, last: Sequence[Posting]) -> list[Posting]:
        """The rows, and every match since the posting in `last`; if `last` is empty, every match."""
        filters = replace(self.filters, since=last[0].time) if last else self.filters
        return list(dict.fromkeys([*rows, *self.postings(pattern, MAX_BY_TIME, filters)]))

    def terms(self, terms: Sequence[Term], factor: int = 1, added: AddedTerms | None = None) -> "FetchedTerms":
        """The messages of the sessions that have the most of the terms."""
        self.reader.prepare(term.pattern for term in terms)
        counts = {term: self.reader.frequency(term.pattern) for term in terms}
        known = [term for term in terms if counts[term]]
        weights = {term.token: self._weight(counts[term], term.framing) for term in known}
        weighted = [(term.pattern, self._weight(counts[term], term.framing)) for term in known]
        related = added.related(terms) if added is not None else []
        for term, typed, closeness in related:
            counts[term] = self.reader.frequency(term.pattern)
            own = self._weight(counts[term], framing=False)
            weighted.append((term.pattern, ranking.RELATED * closeness * min(own, weights.get(typed, own))))
        standing = added.standing(_rarities(known, related, counts)) if added is not None else []
        self.factor = factor if self.size.messages > _SMALL else max(factor, _WHOLE)
        wanted = Wanted(background=self.background, also=frozenset(map(_session_of, standing))).times(self.factor)
        best = self.reader.best_sessions(weighted, self.filters, self.excluded, wanted)
        self.complete = best.complete
        rows = self._only_with_rarer(known, counts, best.rows)
        every = [*known, *(term for term, _, _ in related)]
        matched = [MatchedTerm(counts[term], term.framing, term.token) for term in known]
        matched += [
            MatchedTerm(counts[term], group=typed, typed=False, closeness=closeness)
            for term, typed, closeness in related
        ]
        if standing:
            rows = _add_bit(rows, standing, 1 << len(every))
            every.append(STANDING_TERM)
            matched.append(MatchedTerm(len(standing), typed=False, closeness=0.0, bonus=STANDING))
        numbered = zip(matched, count_terms((mask for _, mask in rows), len(matched)), strict=True)
        matched = [replace(term, frequency=count) if count > term.frequency else term for term, count in numbered]
        matches, numbers = Matches(matched, rows).only_occurring()
        found = [every[number] for number in numbers]
        typed_terms = found[: matches.typed.bit_count()]
        absent = [term for term in terms if term not in typed_terms and not self._occurs(term)]
        return FetchedTerms(typed_terms, found, absent, matches)

    def _only_with_rarer(self, terms: Sequence[Term], counts: Mapping[Term, int], rows: Sequence[Row]) -> list[Row]:
        """The rows without the common and framing terms of messages that have no rarer one."""
        occurring = occurring_terms(rows)
        leading = common = 0
        left = max(_MIN_LEADING, _LEADING_SHARE * self.size.messages)
        for number in sorted(range(len(terms)), key=lambda number: (terms[number].framing, counts[terms[number]])):
            if leading & occurring and (terms[number].framing or counts[terms[number]] > left):
                common |= 1 << number
            else:
                left -= counts[terms[number]]
                leading |= 1 << number
        if not common:
            return list(rows)
        return [(row, kept) for row, mask in rows if (kept := mask if mask & leading else mask & ~common)]

    def _weight(self, frequency: int, framing: bool) -> float:
        return ranking.term_weight(frequency, self.size.messages, framing=framing)

    def _occurs(self, term: Term) -> bool:
        return not self.complete and self.reader.occurs(term.pattern, self.filters)

    def adjacent(self, fetched: "FetchedTerms") -> list[AdjacentTerms]:
        """The messages in which terms are side by side as in the query; of very many, those with the most terms."""
        numbers = {term.token: number for number, term in enumerate(fetched.typed)}
        pairs = [
            (pair, known, sum(1 << number for number in known))
            for pair in self.query.pairs
            if (known := tuple(numbers[word] for word in pair if word in numbers))
        ]
        if not pairs:
            return []
        terms = fetched.matches.terms
        weights = MaskValues([self._weight(term.frequency, term.framing) for term in terms if term.typed])
        typed = (1 << len(fetched.typed)) - 1
        needs = {need for _, _, need in pairs}
        likely = [row for row in fetched.matches.rows if any(row[1] & need == need for need in needs)]
        some = nlargest(self.factor * _MAX_COMPARED, likely, key=lambda row: (weights[row[1] & typed], row[0][5]))
        sequences = self.reader.sequences([row for row, _ in some])
        adjacent = []
        for pair, known, need in pairs:
            (tokens,) = phrase_bytes(pair)
            beside = [row for row, mask in some if mask & need == need and tokens in sequences.get(row, b"")]
            if beside:
                adjacent.append(AdjacentTerms(known, beside))
        return adjacent


class FetchedTerms(NamedTuple):
    """The terms of a query that occur, and the messages that were fetched for them."""

    typed: list[Term]
    every: list[Term]
    """The typed terms, and those that were added."""
    absent: list[Term]
    """The terms that occur nowhere."""
    matches: Matches


def _add_bit(rows: Sequence[Row], also: Iterable[Posting], bit: int) -> list[Row]:
    """The rows, with a term for some messages that need not be among them."""
    masks = dict(rows)
    for row in also:
        masks[row] = masks.get(row, 0) | bit
    return list(masks.items())


def _rarities(
    typed: Sequence[Term], related: Sequence[RelatedTerm], counts: Mapping[Term, int]
) -> list[tuple[Pattern, float]]:
    """The patterns that a standing instruction is found by, and their weights: the rarer, the better."""
    close = [(term, 1.0) for term in typed if not term.framing]
    close += [(term, closeness) for term, _, closeness in related]
    return [(term.pattern, closeness / (1 + counts[term])) for term, closeness in close]


def _fill_shares(rows: Sequence[Posting], counts: Counter[int], share: int) -> list[Posting]:
    """The rows that fill up the share of each session."""
    kept = []
    for row in rows:
        if counts[row.session] < share:
            counts[row.session] += 1
            kept.append(row)
    return kept
