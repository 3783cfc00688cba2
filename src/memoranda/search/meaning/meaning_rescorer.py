"""Reranks the sessions that the words found by what their messages mean.

The score of a session is its score by words plus its likeness to the query, in units of the best score by words. The
likeness is the dot product of unit vectors, averaged over the three best messages of the session, each counting half of
the one before. Several embedders count equally. If the prompt asks for advice or work, a standing instruction of the
user counts again by its own likeness, because it shares few words with what it concerns. The weight was chosen on
development questions of three kinds of conversation at once: see docs/explanation/how-meaning-was-measured.md.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import field, replace
from math import inf, log
from typing import TYPE_CHECKING, NamedTuple

from memoranda.errors import MemorandaError
from memoranda.search import guidance
from memoranda.search.index.postings import USER
from memoranda.search.index.standing_instructions import concerns_work, is_standing
from memoranda.search.index.tokenizer import tokenize
from memoranda.search.legs.leg import Candidate, Candidates, Rescored, RescoringContext
from memoranda.search.legs.words import BACKGROUND, BACKGROUND_SOURCES, SCHEDULED
from memoranda.search.meaning.embedder import Embedder, EmbedderError, Rarity, understands
from memoranda.search.meaning.session_texts import MAX_CHARS, MessageText, read_best, read_session
from memoranda.search.meaning.vector_file import VectorMatch, VectorReader
from memoranda.search.meaning.vector_index import VectorIndex
from memoranda.search.query import Query
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.search.meaning.embedder import Vectors

_log = logging.getLogger(__name__)

SIGNAL = "semantic"
STANDING_SIGNAL = "standing_meaning"
WEIGHT = 1.25
_MAX_CANDIDATES = 50
_MIN_TERMS = 2
_MAX_MATCHES = 40
_SHARES = (1.0, 0.5, 0.25)
_MAX_REMEMBERED = 20_000
# How many texts in no conversation an embedder compares that cannot embed hundreds at once.
_MAX_SLOW = 100

LoadEmbedders = Callable[[], Sequence[Embedder]]
OpenIndex = Callable[[Embedder], VectorIndex | None]


class _Comparison(NamedTuple):
    """One embedder, its vector of the query, and the vectors of its index, if it has one."""

    embedder: Embedder
    wanted: "Vectors"
    reader: VectorReader | None


class _Likeness(NamedTuple):
    """How alike a session is, and how alike its best standing instruction is: 0 if that does not matter."""

    session: float
    standing: float


class MeaningRescorer:
    """Adds the signal `semantic` to the candidates of a search and orders them by both.

    With an index of vectors it also adds sessions that share no word with the query.
    """

    def __init__(self, load: LoadEmbedders, *, seconds: float, open_index: OpenIndex = lambda _: None) -> None:
        """`load` may raise EmbedderError; `seconds` is the deadline of one search."""
        self._load = load
        self._open_index = open_index
        self._seconds = seconds
        self._remembered: dict[str, OrderedDict[tuple[int, int], Vectors]] = {}

    def rescore(self, query: Query, found: Candidates, context: RescoringContext) -> Rescored:
        if query.exact or len(query.terms) < _MIN_TERMS:
            return Rescored(found)
        concerns = query.question and concerns_work(query.text)
        search = _MeaningSearch(query, context, time.monotonic() + self._seconds, concerns)
        try:
            return Rescored(self._rescore(search, found))
        except MemorandaError as error:
            _log.warning("Meaning was not considered: %s", error)
            return Rescored(found, f"Ranked by words only: {error}")

    def compare(self, query: Query, texts: Mapping[int, str], context: RescoringContext) -> dict[int, float]:
        """How alike texts that are in no conversation are to a query, by all embedders that know its script."""
        if query.exact or len(query.terms) < _MIN_TERMS:
            return {}
        search = _MeaningSearch(query, context, time.monotonic() + self._seconds, concerns_work=False)
        compared = [MessageText(number, text[:MAX_CHARS], by_user=True) for number, text in texts.items()]
        likeness: list[dict[int, float]] = []
        try:
            for embedder in (each for each in self._load() if understands(each, query.text)):
                some = compared if embedder.is_fast else compared[:_MAX_SLOW]
                wanted = embedder.embed_query(query.text, search.rarity, timeout=search.time_left(), user=search.user)
                vectors = self._vectors(embedder, search, some)
                likeness.append({number: float(vector @ wanted[0]) for number, vector in vectors.items()})
        except MemorandaError as error:
            _log.warning("Meaning was not considered: %s", error)
            return {}
        numbers = set[int]().union(*likeness)
        return {number: sum(each.get(number, 0.0) for each in likeness) / len(likeness) for number in numbers}

    def _rescore(self, search: "_MeaningSearch", found: Candidates) -> Candidates:
        first, rest = list(found.found[:_MAX_CANDIDATES]), found.found[_MAX_CANDIDATES:]
        embedders = [embedder for embedder in self._load() if understands(embedder, search.query.text)]
        with ExitStack() as stack:
            compared = [self._compare(embedder, search, stack) for embedder in embedders]
            added = _find_more(compared, search, {candidate.session_id for candidate in found.found})
            if not compared or len(first) + len(added) < (1 if added else 2):
                return found
            likeness = [self._likeness(comparison, search, [*first, *added]) for comparison in compared]
        return replace(
            found,
            found=[*_rank([*first, *added], likeness), *rest],
            how=found.how if first else guidance.BY_MEANING,
            sessions=found.sessions + len(added),
        )

    def _compare(self, embedder: Embedder, search: "_MeaningSearch", stack: ExitStack) -> _Comparison:
        text, timeout = search.query.text, search.time_left()
        wanted = embedder.embed_query(text, search.rarity, timeout=timeout, user=search.user)
        index = self._open_index(embedder)
        return _Comparison(embedder, wanted, None if index is None else stack.enter_context(index.reading()))

    def _likeness(
        self, comparison: _Comparison, search: "_MeaningSearch", candidates: list[Candidate]
    ) -> dict[str, _Likeness]:
        """How alike the query and each session are, by the sessions' ids."""
        embedder, wanted, reader = comparison
        # A session that only repeats the question is most alike to it, and says least.
        compared = [candidate for candidate in candidates if not candidate.asked]
        names = [candidate.session_id for candidate in compared]
        known = {} if reader is None else reader.session_likeness(wanted, names, search.context.filters)
        texts = search.texts([one for one in compared if one.session_id not in known], whole=embedder.is_fast)
        vectors = self._vectors(embedder, search, [text for some in texts.values() for text in some])
        for session_id, some in texts.items():
            known[session_id] = {text.id: float(vectors[text.id] @ wanted[0]) for text in some}
        found = {}
        for candidate in compared:
            values = known.get(candidate.session_id, {})
            # Where only the best message was compared, it stands for the session.
            few = candidate.session_id in texts and not embedder.is_fast
            alike = max(values.values(), default=0.0) if few else session_likeness(list(values.values()))
            standing = (values.get(text.id, 0.0) for text in search.standing(candidate))
            found[candidate.session_id] = _Likeness(alike, max([0.0, *standing]))
        return found

    def _vectors(
        self, embedder: Embedder, search: "_MeaningSearch", texts: Sequence[MessageText]
    ) -> "Mapping[int, Vectors]":
        """The vectors of messages, by their ids; those of earlier searches are remembered."""
        remembered = self._remembered.setdefault(embedder.name, OrderedDict())
        keys = [(text.id, hash(text.text)) for text in texts]
        found = {key[0]: remembered[key] for key in keys if key in remembered}
        missing = [number for number, key in enumerate(keys) if key[0] not in found]
        if missing:
            new_texts = [texts[number].text for number in missing]
            new = embedder.embed(new_texts, timeout=search.time_left(), user=search.user)
            for row, number in enumerate(missing):
                found[texts[number].id] = remembered[keys[number]] = new[row]
        while len(remembered) > _MAX_REMEMBERED:
            remembered.popitem(last=False)
        return found


def _find_more(compared: Sequence[_Comparison], search: "_MeaningSearch", known: Set[str]) -> list[Candidate]:
    """The sessions that are alike to the query and share no word with it, by their best message."""
    best: dict[str, VectorMatch] = {}
    sources = search.context.filters.values_of("source")
    lowered = frozenset() if sources is not None and sources <= BACKGROUND_SOURCES else BACKGROUND_SOURCES
    for comparison in compared:
        if comparison.reader is not None:
            search.time_left()
            for match in comparison.reader.search(comparison.wanted, search.context.filters, _MAX_MATCHES):
                if match.likeness >= comparison.embedder.min_likeness and match.session_id not in known:
                    best.setdefault(match.session_id, match)
    return [
        Candidate(
            session_id=match.session_id,
            conversation_id=match.conversation_id,
            source=match.source,
            message_id=match.message,
            role="user" if match.role == USER else "assistant",
            time=match.time,
            score=0.0,
            signals={SCHEDULED: BACKGROUND} if match.source in lowered else {},
            matches=1,
        )
        for match in best.values()
    ]


@dataclass(frozen=True, slots=True)
class _MeaningSearch:
    """One query, what it may see, and when it must end."""

    query: Query
    context: RescoringContext
    deadline: float
    concerns_work: bool
    """Whether standing instructions of the user may concern the query."""
    _sessions: dict[str, list[MessageText]] = field(default_factory=dict)
    _standing: dict[str, list[MessageText]] = field(default_factory=dict)

    @property
    def user(self) -> str:
        return self.context.filters.scope.user or ""

    def time_left(self) -> float:
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise EmbedderError("comparing meanings took too long.")
        return seconds

    @property
    def rarity(self) -> Rarity:
        """The inverse document frequency of the query's terms; other words are common everywhere."""
        reader, terms = self.context.reader, {term.token: term.pattern for term in self.query.terms}
        messages = reader.size().messages

        def measure(word: str) -> float:
            pattern = next((terms[token] for token in tokenize(word) if token in terms), None)
            if pattern is None:
                return inf
            frequency = reader.frequency(pattern)
            return log(1 + (max(messages - frequency, 0) + 0.5) / (frequency + 0.5))

        return measure

    def texts(self, candidates: list[Candidate], *, whole: bool) -> dict[str, list[MessageText]]:
        """The messages to compare, by session: all of them, or if embedding takes long the best one.

        A standing instruction that may concern the query is always compared.
        """
        asked = " ".join(self.query.text.casefold().split())
        found: dict[str, list[MessageText]] = {}
        best = {} if whole else read_best(self.context.reader, candidates, self.context.filters)
        for candidate in candidates:
            self.time_left()
            texts: Iterable[MessageText] = (
                self._session(candidate)
                if whole
                else dict.fromkeys([*filter(None, [best.get(candidate.message_id or 0)]), *self.standing(candidate)])
            )
            found[candidate.session_id] = [text for text in texts if " ".join(text.text.casefold().split()) != asked]
        return found

    def standing(self, candidate: Candidate) -> list[MessageText]:
        """The standing instructions in a session that may concern the query."""
        if not self.concerns_work:
            return []
        known = self._standing.get(candidate.session_id)
        if known is None:
            known = [text for text in self._session(candidate) if text.by_user and is_standing(text.text)]
            self._standing[candidate.session_id] = known
        return known

    def _session(self, candidate: Candidate) -> list[MessageText]:
        known = self._sessions.get(candidate.session_id)
        if known is None:
            known = read_session(self.context.reader, candidate, self.context.filters)
            self._sessions[candidate.session_id] = known
        return known


def session_likeness(values: Sequence[float]) -> float:
    """The likeness of a session from that of its messages; a session with fewer than three is less alike."""
    best = sorted(values, reverse=True)[: len(_SHARES)]
    return sum(value * share for value, share in zip(best, _SHARES, strict=False)) / sum(_SHARES)


def _rank(candidates: Sequence[Candidate], likeness: Sequence[Mapping[str, _Likeness]]) -> list[Candidate]:
    unit = max(candidate.score for candidate in candidates) or 1.0
    nothing = _Likeness(0.0, 0.0)
    ranked = []
    for candidate in candidates:
        found = [values.get(candidate.session_id, nothing) for values in likeness]
        alike = sum(one.session for one in found) / len(found)
        standing = sum(one.standing for one in found) / len(found)
        # A scheduled job counts for less, in what it says as in its words.
        added = WEIGHT * unit * (alike + standing) * candidate.signals.get(SCHEDULED, 1.0)
        signals = {**candidate.signals, SIGNAL: alike} | ({STANDING_SIGNAL: standing} if standing else {})
        ranked.append(candidate._replace(score=candidate.score + added, signals=signals))
    ranked.sort(key=lambda candidate: -candidate.score)
    return ranked
