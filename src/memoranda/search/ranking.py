"""Ranks sessions by their best messages, by the neighbours of those messages, and by the session as a whole.

Every term has a weight: a rare word a high one, a common word a low one, a framing word less. The score of a message is
the weight of its terms, higher if the message is short and has the role that the question asks about; neighbours add
the terms that it lacks. The score of a session adds up its three best messages, each counting less than the one before,
and how often the whole session has the terms. Dates named in the query raise the score; equal ones are by time, newest
first.

The weights were chosen on development questions of three kinds of conversation at once, as round numbers on a wide
plateau; `benchmarks/ablation.py` shows what each earns.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log
from typing import Any, Literal, NamedTuple

from memoranda.search.dates import TimeRange, date_closeness
from memoranda.search.index.postings import ASSISTANT, TITLE, TOOL, USER, IndexSize, Posting
from memoranda.search.query import Perspective, Term
from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MatchedTerm:
    """One term as the ranking weighs it. `frequency` also counts matches that were not fetched."""

    frequency: int
    framing: bool = False
    group: str = ""
    """The token of a typed term. Of a typed term and the words that are related to it, a message counts one."""
    typed: bool = True
    """False for what the search adds to the query: a related word, or the signs of a standing instruction."""
    closeness: float = 1.0
    """How close a related word is to the typed term."""
    bonus: float = 0.0
    """Its weight as a share of the weight of all typed terms, for what does not count by its rarity."""


Row = tuple[Posting, int]
"""A message, and which terms it has: bits, in the order of the terms."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The messages that were fetched, each once with all of its terms."""

    terms: Sequence[MatchedTerm]
    rows: Sequence[Row]

    @property
    def typed(self) -> int:
        """The terms that were typed, as bits."""
        return sum(1 << number for number, term in enumerate(self.terms) if term.typed)

    def count_rows(self) -> list[int]:
        """How many of the messages have each term."""
        return count_terms((mask for _, mask in self.rows), len(self.terms))

    def in_sessions(self, sessions: Collection[int]) -> "Matches":
        return replace(self, rows=[row for row in self.rows if row[0][1] in sessions])

    def only_occurring(self) -> "tuple[Matches, list[int]]":
        """The same messages without the terms that none of them has, and the numbers that the others had."""
        numbers = bits_of(occurring_terms(self.rows))
        if len(numbers) == len(self.terms):
            return self, numbers
        closer = _CloserBits(numbers)
        rows = [(row, closer[mask]) for row, mask in self.rows]
        return Matches([self.terms[number] for number in numbers], rows), numbers


def occurring_terms(rows: Iterable[Row]) -> int:
    """The terms that any of the messages has."""
    found = 0
    for _, mask in rows:
        found |= mask
    return found


def count_terms(masks: Iterable[int], terms: int) -> list[int]:
    """How many of the masks have each of the terms: many masks are equal, so few are looked at."""
    found = [0] * terms
    for mask, count in Counter(masks).items():
        for number in bits_of(mask):
            found[number] += count
    return found


def bits_of(mask: int) -> list[int]:
    """The numbers of the bits that are set, rising."""
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


class _CloserBits(dict[int, int]):
    """Each mask with only these bits, moved together."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__()
        self._numbers = numbers

    def __missing__(self, mask: int) -> int:
        self[mask] = found = sum(1 << place for place, number in enumerate(self._numbers) if mask >> number & 1)
        return found


class MaskValues(dict[int, float]):
    """The weight of each set of terms, computed when first asked for: the same sets occur often."""

    def __init__(self, weights: Sequence[float], groups: Sequence[str] = ()) -> None:
        """Of the terms of a group, the heaviest counts; a term without a group is one by itself."""
        super().__init__({0: 0.0})
        self._weights = weights
        self._groups = [group or str(number) for number, group in enumerate(groups or [""] * len(weights))]

    def __missing__(self, mask: int) -> float:
        best: dict[str, float] = {}
        for number, weight in enumerate(self._weights):
            if mask >> number & 1 and weight > best.get(self._groups[number], 0.0):
                best[self._groups[number]] = weight
        self[mask] = worth = sum(best.values())
        return worth


@dataclass(frozen=True, slots=True)
class AdjacentTerms:
    """The postings in which two terms are neighbours; `terms` are their numbers."""

    terms: tuple[int, ...]
    postings: list[Posting]


@dataclass(frozen=True, slots=True)
class RankingContext:
    """What a query asks for besides its words."""

    perspective: Perspective
    time_ranges: Sequence[TimeRange]


NEWER_STATEMENT, OLDER_STATEMENT = "newer_statement", "older_statement"
"""Signals of a score: it states what another one stated before, or what another one states later."""


class SessionScore(NamedTuple):
    """The score of a session and its reasons. Terms are bits, in their order."""

    session: int
    score: float
    best: Posting
    own: int
    """The terms in its best message."""
    near: int
    """The terms of the message that has most of them together with its neighbours."""
    whole: int
    matches: int
    signals: Mapping[str, float]
    asked: int = 0
    """If the session only repeats the question: how many sessions do."""
    repeated: int = 0
    """How many later sessions repeat one of its messages."""
    messages: tuple[tuple[int, float], ...] = ()
    """Its best messages and their scores."""


Sort = Literal["newest", "oldest"]

SATURATION = 1.2
LENGTH = 0.6
# Answers of an assistant are long, and so may be a message that is wanted by itself, so their length counts less.
ANSWER_LENGTH = 0.4
NEIGHBOUR = 0.4
FURTHER_NEIGHBOUR = 0.1
COVERAGE = 0.4
NEXT_BEST = 0.3
CONVERSATION = 0.3
OTHER_ROLE = 0.35
FRAMING = 0.4
EVENNESS = 0.5
SIDE_BY_SIDE = 0.7
DATE = 0.5
# How much of the score of its session a single message earns.
SESSION_SHARE = 0.2
# How much of the weight of a typed word the words have that are related to it, times their closeness.
RELATED = 0.4

# The shares of a session's best messages; further messages do not count.
_SHARES = tuple(NEXT_BEST**number for number in range(3))
# How many of its best messages a session lists, for the evidence.
_MAX_LISTED = 8
# If there are more sessions, only the most promising are scored.
_MAX_SESSIONS = 50
# In an order by time, sessions that match far worse than the best are omitted.
_MIN_SHARE_OF_BEST = 0.5
_NEIGHBOURS = ((-1, NEIGHBOUR), (1, NEIGHBOUR), (-2, FURTHER_NEIGHBOUR), (2, FURTHER_NEIGHBOUR))


class _MessageScore(NamedTuple):
    """The score of a message. Compares by score, then by time."""

    score: float
    time: float
    own: float
    around: float
    mask: int
    weight: float
    row: Posting


_as_message_score: Callable[[tuple[Any, ...]], _MessageScore] = partial(tuple.__new__, _MessageScore)
"""Like `_MessageScore._make`, in half the time: a search has hundreds."""


def rank(
    matches: Matches,
    pairs: Sequence[AdjacentTerms],
    size: IndexSize,
    context: RankingContext,
    *,
    every: bool = False,
) -> list[SessionScore]:
    """The sessions with any of the terms, best first; if there are many, only the most promising, unless `every`."""
    return _Ranker(matches, pairs, size, context, None if every else _MAX_SESSIONS).scores()


def rank_messages(
    matches: Matches, pairs: Sequence[AdjacentTerms], size: IndexSize, context: RankingContext
) -> list[Posting]:
    """The messages with any of the terms, best first."""
    return [row for row, _ in score_messages(matches, pairs, size, context)]


def score_messages(
    matches: Matches, pairs: Sequence[AdjacentTerms], size: IndexSize, context: RankingContext
) -> list[tuple[Posting, float]]:
    """The messages with any of the terms and their scores, best first; a message of a good session is a better one."""
    return _Ranker(matches, pairs, size, context, max_sessions=None).messages()


def term_weight(frequency: float, documents: int, *, framing: bool) -> float:
    """The weight of a term that occurs in `frequency` of the messages."""
    return (FRAMING if framing else 1.0) * (_rarity(frequency, documents) + EVENNESS)


def occurring_share(matches: Matches, absent: Iterable[Term], size: IndexSize) -> float:
    """How much of the weight of the typed terms occurs anywhere."""
    typed = (term for term in matches.terms if term.typed)
    occurs = sum(term_weight(term.frequency, size.messages, framing=term.framing) for term in typed)
    return occurs / (occurs + sum(term_weight(0, size.messages, framing=term.framing) for term in absent) or 1.0)


def sessions_by_time(rows: list[Posting], sort: Sort, scored: Sequence[SessionScore] = ()) -> list[SessionScore]:
    """Each session by its newest or oldest row, with the score and signals that it has in `scored`."""
    first: dict[int, Posting] = {}
    counts: dict[int, int] = {}
    for row in sort_by_time(rows, sort):
        first.setdefault(row.session, row)
        counts[row.session] = counts.get(row.session, 0) + 1
    known = {score.session: score for score in scored}
    return [
        known[session]._replace(best=row, matches=counts[session])
        if session in known
        else SessionScore(session, 0.0, row, 1, 1, 1, counts[session], {})
        for session, row in first.items()
    ]


def sort_by_time(rows: list[Posting], sort: Sort) -> list[Posting]:
    return sorted(rows, key=lambda row: (row.time, row.message), reverse=sort == "newest")


def keep_well_matching(scores: list[SessionScore], sort: Sort | None) -> list[SessionScore]:
    """Ranked sessions in the requested order; by time, only those that match well."""
    if sort is None or not scores:
        return scores
    minimum = _MIN_SHARE_OF_BEST * max(score.score for score in scores)
    kept = [score for score in scores if score.score >= minimum]
    return sorted(kept, key=lambda score: score.best.time, reverse=sort == "newest")


class _Ranker:
    def __init__(
        self,
        matches: Matches,
        pairs: Sequence[AdjacentTerms],
        size: IndexSize,
        context: RankingContext,
        max_sessions: int | None = _MAX_SESSIONS,
    ) -> None:
        self._context, self._size = context, size
        terms = matches.terms
        weights = [term_weight(term.frequency, size.messages, framing=term.framing) for term in terms]
        self._weights, self._total = _weigh_added(terms, weights)
        whole: dict[int, int] = {}
        for row, mask in matches.rows:
            whole[row[1]] = whole.get(row[1], 0) | mask
        weights = [
            (FRAMING if term.framing else 1.0) * _rarity(sessions * term.frequency / max(1, messages), size.sessions)
            for term, sessions, messages in zip(
                terms, count_terms(whole.values(), len(terms)), matches.count_rows(), strict=True
            )
        ]
        self._session_weights, self._session_total = _weigh_added(terms, weights)
        self._values = MaskValues([worth / self._total for worth in self._weights], [term.group for term in terms])
        self._bonuses = {number for number, term in enumerate(terms) if term.bonus}
        self._typed = matches.typed
        self._weight_of = _LengthWeights(size, context.perspective)
        self._numbers = _TermNumbers()
        sessions: Collection[int] = whole
        if max_sessions is not None and len(whole) > max_sessions:
            sessions = self._promising_sessions(matches.rows, max_sessions)
            matches = matches.in_sessions(sessions)
        # Keys of neighbouring messages differ by one.
        self._masks = {(row[1] << 32) + row[2]: mask for row, mask in matches.rows}
        self._rows = {(row[1] << 32) + row[2]: row for row, _ in matches.rows}
        self._side_by_side = self._weigh_pairs(pairs, sessions)

    def scores(self) -> list[SessionScore]:
        by_session: dict[int, list[_MessageScore]] = {}
        nearest: dict[int, int] = {}
        for key, mask in self._masks.items():
            scored, near = self._score(key, mask)
            session = scored.row[1]
            by_session.setdefault(session, []).append(scored)
            known = nearest.get(session, 0)
            if near != known and self._values[near] > self._values[known]:
                nearest[session] = near
        found = [self._score_session(number, scored, nearest.get(number, 0)) for number, scored in by_session.items()]
        found.sort(key=lambda score: (-score.score, -score.best.time))
        return found

    def messages(self) -> list[tuple[Posting, float]]:
        by_session: dict[int, list[_MessageScore]] = {}
        for key, mask in self._masks.items():
            scored, _ = self._score(key, mask)
            by_session.setdefault(scored.row[1], []).append(scored)
        weight_of = _LengthWeights(self._size, self._context.perspective, single=True)
        found: list[tuple[Posting, float]] = []
        for session, some in by_session.items():
            share = SESSION_SHARE * self._score_session(session, some, 0).score
            for scored in some:
                row, own = scored.row, scored.own * weight_of[scored.row[3:5]] / scored.weight
                score = scored.score * (own + scored.around) / ((scored.own + scored.around) or 1.0)
                found.append((row, score + share))
        found.sort(key=lambda message: (-message[1], -message[0].time))
        return found

    def _promising_sessions(self, rows: Iterable[Row], limit: int) -> Collection[int]:
        """The sessions that have most of the terms."""
        counts: dict[tuple[int, int], int] = {}
        for row, mask in rows:
            for number in self._numbers[mask]:
                key = row[1], number
                counts[key] = counts.get(key, 0) + 1
        promise: dict[int, float] = {}
        for (session, number), count in counts.items():
            worth = self._session_weights[number] + 0.01
            promise[session] = promise.get(session, 0.0) + worth * count / (count + SATURATION)
        # Among equals the newer comes first, because the rows do.
        return frozenset(sorted(promise, key=promise.__getitem__, reverse=True)[:limit])

    def _weigh_pairs(self, pairs: Sequence[AdjacentTerms], sessions: Collection[int]) -> dict[int, float]:
        bonuses: dict[int, float] = {}
        for pair in pairs:
            worth = SIDE_BY_SIDE * sum(self._weights[term] for term in pair.terms) / 2 / self._total
            for row in pair.postings:
                if row[1] in sessions:
                    key = (row[1] << 32) + row[2]
                    bonuses[key] = bonuses.get(key, 0.0) + worth
        return bonuses

    def _score(self, key: int, mask: int) -> tuple[_MessageScore, int]:
        """The score of a message, and the terms that it has together with its neighbours."""
        masks, rows, values = self._masks, self._rows, self._values
        row = rows[key]
        covered = values[mask] + self._side_by_side.get(key, 0.0)
        weight = self._weight_of[row[3:5]]
        own = covered * weight
        around = 0.0
        seen = mask
        get = masks.get
        # Usually the neighbours add nothing, and they never add to a message that has all terms.
        further = ~mask & self._typed and (
            (get(key - 1, 0) | get(key + 1, 0) | get(key - 2, 0) | get(key + 2, 0)) & ~mask
        )
        for offset, share in _NEIGHBOURS if further else ():
            new = get(key + offset, 0) & ~seen
            if new:
                worth = (values[seen | new] - values[seen]) * share
                covered += worth
                around += worth * self._weight_of[rows[key + offset][3:5]]
                seen |= new
        score = (own + around) * (1.0 + COVERAGE * covered)
        return _as_message_score((score, row[5], own, around, mask, weight, row)), seen

    def _score_session(self, session: int, scored: list[_MessageScore], near: int) -> SessionScore:
        scored.sort(reverse=True)
        # A title names the conversation, but a message is better evidence, if there is one.
        best = scored[0]
        if best.row[3] == TITLE:
            best = next((message for message in scored if message.row[3] != TITLE), best)
        messages = 0.0
        for message, share in zip(scored, _SHARES, strict=False):
            messages += message.score * share
        whole = titles = 0
        for message in scored:
            whole |= message.mask
            titles += message.row[3] == TITLE
        conversation = CONVERSATION * self._conversation_score(scored)
        lift = 1.0
        if self._context.time_ranges:
            lift += DATE * date_closeness(self._context.time_ranges, best.row.time)
        return SessionScore(
            session,
            (messages + conversation) * lift,
            best.row,
            best.mask & self._typed,
            near & self._typed,
            whole & self._typed,
            len(scored) - titles,
            {
                "message": best.own,
                "neighbours": best.around,
                "further_messages": messages - best.score,
                "conversation": conversation,
                "coverage": self._values[whole & self._typed],
                "date": lift,
            }
            | self._added_signals(best.mask),
            messages=tuple((m.row[0], m.score) for m in scored[:_MAX_LISTED] if m.row[3] != TITLE),
        )

    def _added_signals(self, mask: int) -> dict[str, float]:
        """How much related words and a standing instruction add to the best message, if they add anything."""
        typed = mask & self._typed
        if mask == typed:
            return {}
        related = sum(1 << number for number in self._numbers[mask] if number not in self._bonuses)
        added = {"related": self._values[related] - self._values[typed], "standing": self._values[mask ^ related]}
        return {name: value for name, value in added.items() if value}

    def _conversation_score(self, scored: list[_MessageScore]) -> float:
        """How often a session has the terms in all of its messages."""
        amounts = [0.0] * len(self._weights)
        for message in scored:
            for number in self._numbers[message.mask]:
                amounts[number] += message.weight
        total = 0.0
        for worth, amount in zip(self._session_weights, amounts, strict=True):
            if amount:
                total += worth * amount * (SATURATION + 1) / (amount + SATURATION)
        return total / self._session_total


def _weigh_added(terms: Sequence[MatchedTerm], weights: list[float]) -> tuple[list[float], float]:
    """The weights, lower for what was not typed, and the sum of those of typed terms that occur."""
    typed = {term.group: weight for term, weight in zip(terms, weights, strict=True) if term.typed}
    total = sum(weight for term, weight in zip(terms, weights, strict=True) if term.typed and term.frequency) or 1.0
    return [
        weight
        if term.typed
        else term.bonus * total or RELATED * term.closeness * min(weight, typed.get(term.group, weight))
        for term, weight in zip(terms, weights, strict=True)
    ], total


def _rarity(frequency: float, documents: int) -> float:
    return log(1 + (max(documents - frequency, 0.0) + 0.5) / (frequency + 0.5))


class _TermNumbers(dict[int, list[int]]):
    """The numbers of the terms in each set."""

    def __missing__(self, mask: int) -> list[int]:
        self[mask] = found = bits_of(mask)
        return found


class _LengthWeights(dict[tuple[int, int], float]):
    """The weight of a message by its role and length, as part of its session or as a single one."""

    def __init__(self, size: IndexSize, perspective: Perspective, *, single: bool = False) -> None:
        super().__init__()
        self._average = max(1.0, size.tokens / max(1, size.messages))
        may_be_long = perspective is Perspective.ASSISTANT or (single and perspective is not Perspective.USER)
        self._length = ANSWER_LENGTH if may_be_long else LENGTH
        self._roles = {USER: 1.0, ASSISTANT: 1.0, TOOL: OTHER_ROLE, TITLE: 1.0}
        if perspective is Perspective.USER or (perspective is Perspective.SUMMARY and not single):
            self._roles[ASSISTANT] = OTHER_ROLE
        elif perspective is Perspective.ASSISTANT:
            self._roles[USER] = OTHER_ROLE

    def __missing__(self, kind: tuple[int, int]) -> float:
        role, length = kind
        by_length = (SATURATION + 1) / (1 + SATURATION * (1 - self._length + self._length * length / self._average))
        self[kind] = worth = by_length * self._roles[role]
        return worth
