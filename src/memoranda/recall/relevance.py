"""The relevance floor: decides which hits are shown with a prompt that did not ask for a search; mostly none.

A search always returns its best matches. A prompt is not a search: most prompts have nothing to do with the past, and
irrelevant evidence costs attention. So the best message of each conversation is compared with the words of the prompt:
how much of their weight it contains (`share`), and how much weight it contains together with its neighbours, measured
in rare words (`rarity`). The floor for a prompt that asks about the past is lower. The floors were chosen on public
questions and prompts, including some without an answer: see docs/explanation/how-relevance-was-measured.md.
"""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Protocol

from memoranda.index.message_text import searchable_text
from memoranda.index.postings import Filters, Prefix, Word
from memoranda.index.search_index import SearchIndex
from memoranda.index.tokenizer import is_single_character, tokenize
from memoranda.recall.query import Query, Term, is_question
from memoranda.recall.ranking import term_weight
from memoranda.recall.search import Hit, SearchResult
from memoranda.sessions.conversations import Conversations

MIN_WORDS = 2
# A question, its answer and what led to them count together.
_NEIGHBOURS = 2
# Longer prompts are tasks, whatever their tense.
_MAX_QUESTION = 400
_MAX_PROMPT = 2_000
_ASKS_BACK = re.compile(
    r"\b(?:did|had|was|were|have|has)\s+(?!to\b)\w"
    r"|\b(?:remember|recall|remind|last (?:time|week|month|year)|earlier|previous(?:ly)?|ago|yesterday|used to|once"
    r"|back then|already|decided?|agreed|chose|discussed|talked|mentioned|told|said)\b",
    re.IGNORECASE,
)
# Operators of a query mean nothing in a prompt.
_OPERATORS = re.compile(r"[\"*()“”]|(?<!\S)-+")
_CONNECTIVES = re.compile(r"\b(?:AND|OR|NOT)\b")


@dataclass(frozen=True, slots=True)
class Floor:
    """The minimum of both measures: the share of the words' weight in the message, and the weight in rare words."""

    share: float
    rarity: float


ASKED = Floor(0.5, 1.2)
UNASKED = Floor(0.5, 2.3)


@dataclass(frozen=True, slots=True)
class Relevance:
    """How much of a prompt the best message of a conversation contains (`rarity`: with its neighbours).

    `words` counts the terms in it, without framing words.
    """

    hit: Hit
    share: float
    rarity: float
    words: int
    answered: bool = True
    """False for a hit that only repeats the prompt and got no answer."""

    def clears(self, floor: Floor) -> bool:
        return self.share >= floor.share and self.rarity >= floor.rarity and self.words >= MIN_WORDS


class RelevanceStore(Protocol):
    """The part of a store that the floor reads: a search, its index, and the messages around a hit."""

    @property
    def find(self) -> Callable[..., SearchResult]: ...
    @property
    def index(self) -> SearchIndex: ...
    @property
    def conversations(self) -> Conversations: ...


@dataclass(frozen=True, slots=True)
class PromptRelevance:
    """The result of a search for the words of a prompt, and the floor that each hit must clear."""

    floor: Floor
    measured: list[Relevance]
    result: SearchResult

    @property
    def hits(self) -> list[Hit]:
        """The hits that clear the floor, best first.

        A hit that only repeats the prompt is omitted if it follows others, which answer better, or got no answer.
        """
        found: list[Hit] = []
        for relevance in self.measured:
            if relevance.clears(self.floor) and (not relevance.hit.asked or (relevance.answered and not found)):
                found.append(relevance.hit)
        return found


def relevant_hits(db: RelevanceStore, prompt: str, filters: Filters, *, limit: int) -> list[Hit]:
    """The conversations that are relevant to a prompt, best first; for most prompts there are none."""
    return judge_prompt(db, prompt, filters, limit=limit).hits


def judge_prompt(db: RelevanceStore, prompt: str, filters: Filters, *, limit: int) -> PromptRelevance:
    """Searches for the words of a prompt, measures each hit, and chooses the floor."""
    found = db.find(_remove_operators(prompt), filters, limit=limit)
    measured: list[Relevance] = []
    if found.hits:
        measure = _Measure(db, found.query, found.asked)
        measured = [relevance for hit in found.hits if (relevance := measure.of(hit)) is not None]
    return PromptRelevance(ASKED if asks_about_the_past(prompt) else UNASKED, measured, found)


def _is_answered(db: RelevanceStore, hit: Hit) -> bool:
    """Whether the question in a hit got an answer."""
    from memoranda.recall.evidence import Evidence  # noqa: PLC0415

    found = None if hit.message_id is None else Evidence(db.conversations).find_answer(hit.message_id)
    return found is not None and found.message.id != hit.message_id


def asks_about_the_past(prompt: str) -> bool:
    """Whether a prompt asks about the past, as far as its words tell."""
    return len(prompt) <= _MAX_QUESTION and bool(_ASKS_BACK.search(prompt) or is_question(prompt))


def measure_relevance(db: RelevanceStore, prompt: str, filters: Filters, *, limit: int) -> list[Relevance]:
    """Searches for the words of a prompt and measures each hit."""
    return judge_prompt(db, prompt, filters, limit=limit).measured


def _remove_operators(prompt: str) -> str:
    plain = _OPERATORS.sub(" ", prompt[:_MAX_PROMPT])
    return _CONNECTIVES.sub(lambda match: match[0].lower(), plain)


class _Measure:
    """The words of one prompt, and their weights in one store."""

    def __init__(self, db: RelevanceStore, query: Query, asked: Mapping[str, int]) -> None:
        """`asked`: how many messages have a term only because they repeat the prompt; they do not make it common."""
        self._db = db
        with db.index.reading() as reader:
            messages = reader.size().messages
            self._weights = {
                term: term_weight(
                    max(0, reader.frequency(term.pattern) - asked.get(term.text, 0)), messages, framing=term.framing
                )
                for term in query.terms
            }
        self._total = sum(self._weights.values()) or 1.0
        self._rare = term_weight(1, messages, framing=False)

    def of(self, hit: Hit) -> Relevance | None:
        """None for a hit that only its title matches, or that was deleted."""
        window = None if hit.message_id is None else self._db.conversations.window_around(hit.message_id, _NEIGHBOURS)
        if window is None:
            return None
        own: frozenset[str] = frozenset()
        around: set[str] = set()
        for message in window.messages:
            words = searchable_text(message)
            tokens = frozenset(tokenize(f"{words.text}\n{words.tool_text}"))
            own = tokens if message.id == hit.message_id else own
            around |= tokens
        contained = [term for term in self._weights if _contains(own, term)]
        return Relevance(
            hit,
            self._weigh(own) / self._total,
            self._weigh(around) / self._rare,
            sum(not term.framing for term in contained),
            not hit.asked or _is_answered(self._db, hit),
        )

    def _weigh(self, tokens: Set[str]) -> float:
        return sum(worth for term, worth in self._weights.items() if _contains(tokens, term))


def _contains(tokens: Set[str], term: Term) -> bool:
    pattern = term.pattern
    if isinstance(pattern, Prefix) or (isinstance(pattern, Word) and is_single_character(pattern.token)):
        return any(token.startswith(pattern.token) for token in tokens)
    return (pattern.token if isinstance(pattern, Word) else term.token) in tokens
