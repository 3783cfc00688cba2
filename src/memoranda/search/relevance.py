"""Measures how well a hit matches a prompt or a query: for the relevance floor, and for how sure a search is.

A search always returns its best matches. A prompt is not a search: most prompts have nothing to do with the past, and
irrelevant evidence costs attention. So the best message of each conversation, with its neighbours, is compared with the
words of the prompt, and only a hit that clears the floor is shown. A search shows every hit, and says how sure it is.

Most prompts to an agent are tasks and general questions, which nothing in the record answers. The kind of a prompt
alone decides nothing; it raises or lowers what a hit must have in common with the prompt.

What each measure counts for is in `Calibration`, in points, which are log-odds. A hit clears the floor with no fewer
than zero points. The constants are rounded results of a logistic regression over development questions and prompts;
`python -m benchmarks.relevance --data DIR --fit` prints them, and docs/explanation/how-relevance-was-measured.md says
what they mean on data that was not used for them.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from difflib import get_close_matches
from itertools import accumulate
from math import log
from typing import Literal, Protocol

from memoranda.memory.record.conversations import Conversations, EndsShape, ReadAhead, Window, WindowShape
from memoranda.memory.record.feed import FeedMessage
from memoranda.search.evidence import BOOKEND, CONVERSATION_ROLES, WINDOW, weigh_messages
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import Filters, Prefix, Word
from memoranda.search.index.related_words import close_words
from memoranda.search.index.tokenizer import (
    STOP_WORDS,
    is_single_character,
    may_have_token,
    tokenize,
    tokens_of_words,
)
from memoranda.search.query import (
    EVERYDAY,
    FRAMING,
    MAX_QUESTION,
    Perspective,
    Query,
    Term,
    asks_about_the_past,
    find_perspective,
    find_places,
    is_question,
    may_name,
    words_in_place,
)
from memoranda.search.ranking import LENGTH, NEWER_STATEMENT, OLDER_STATEMENT, SATURATION, term_weight
from memoranda.search.repeated_questions import ASKED_BEFORE, MISSPELT
from memoranda.search.search import Hit, SearchResult
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

_QUESTION = compile_later(
    r"^\W*(?:(?:and|so|hey|hi|ok|okay|well|also|but|then),?\s+)*(?:what|when|where|who|whom|whose|which|why|how|did|do"
    r"|does|is|are|was|were|has|have|had|can|could|would|should|will)\b|[?？]",
    re.IGNORECASE,
)
_FIRST_PERSON = compile_later(
    r"\b(?:ich|mein\w*|mir|mich|wir|unser\w*|je|mon|mes|nous|notre|yo|mis|nuestr\w+|meu|minha|noss[oa]s?|mia|miei"
    r"|nostr\w|я|мне|мой|моя|мы|наш\w*)\b|\bj['’]",
    re.IGNORECASE,
)
# What the prompt points at is on the screen, not in the record.
_HERE = compile_later(r"\b(?:this|these|that|those|above|below|here|it)\b", re.IGNORECASE)
_HOW_TO = compile_later(
    r"\bhow (?:do|can|should|would|could) (?:i|you|we|one)\b|\bhow to\b|\bwhat(?:['’]s| is| are) (?:an?|the"
    r" (?:difference|best))\b|\bwhat does .* (?:do|mean)\b|\bexplain\b|\bwhat (?:should|would)\b|\bwhich .* should\b",
    re.IGNORECASE,
)
_NAME = compile_later(r"(?<=[\w,;:’'\"]\s)[A-Z][a-z]+")
_UNSPACED = compile_later(r"[\u3040-\u30ff\u3400-\u9fff]")
# Whose something is: "my sister's landlord"; "die Katze von Familie Brandt", "le médecin de ma tante", "Ninas Auto".
_OWNER_BEFORE = compile_later(
    r"(?:\b(?:the|my|our|his|her|their|your)\s+((?:\w+\s+){1,2}))?\b([^\W\d_]+)(?:['’]s|(?<=s)['’])\s+(?=\w)",
    re.IGNORECASE,
)
_OWNER_AFTER = compile_later(
    r"\b(?:(?:vo[nm]|d[aeiou]|del|della)\s+|d['’])"
    r"((?:mein\w*|unser\w*|m[aio]n?|m[ei]s|meu|minha|notre|nuestr\w+|noss\w+|mi[ao])\s+)?"
    r"(?:(?:Familie|Frau|Herrn?|Tante|Onkel)\s+)?(\w+)"
    r"|(?<=[^\W\d_A-Z]\s)([A-ZÄÖÜ][a-zäöüß]+s)\s(?=[A-ZÄÖÜ])"
)
# The same in scripts without spaces ("小李的车牌", "佐藤さんの誕生日"), but not the speaker, a time or a place.
_OWNER_UNSPACED = compile_later(
    r"(?:^|[，。？！、,\s])(?:我(?!们|們)|[私僕俺]の)?"
    r"(?:([\u4e00-\u9fff]{1,6}?)的|([\u4e00-\u9fff\u30a0-\u30ff]{1,8}?)(?:さん|くん|ちゃん|様|氏)?の)"
    r"(?=[\u3040-\u30ff\u3400-\u9fff])(?![什哪谁])"
)
_NO_ONE_ELSE = compile_later(r"[我咱你您这那哪谁誰什何私僕俺自当弊今昨明上下前次最新现目每几多]|[面里裡边中内外間间]$")
_TIMES = tokens_of_words("yesterday tonight night morning evening year everyone everybody someone anyone")
# Of a question about another one of the same kind, a message lacks few words, and has others in their places.
_MAX_ABSENT, _SIMILAR = 2, 0.65
_SAME = 0.6
"""Words that are closer than this may stand for one another: "mom" and "mother"."""
_NO_OWNERS = STOP_WORDS | FRAMING | EVERYDAY | _TIMES


@dataclass(frozen=True, slots=True)
class PromptKind:
    """The kind of one prompt, as far as its words tell."""

    question: bool
    """It asks, or it asks back ("remind me of ..."), in a few lines."""
    about_past: bool
    """It asks about the past."""
    personal: bool
    """It speaks of its author or of what the assistant said, or its script has no capitals to tell names by."""
    here: bool
    """It points at something ("this", "above")."""
    how_to: bool
    """It asks how something is done or what something means, in general."""
    names: frozenset[str]
    """The tokens of capitalised words within a sentence."""


def find_kind(prompt: str) -> PromptKind:
    short = len(prompt) <= MAX_QUESTION
    about_past = asks_about_the_past(prompt)
    return PromptKind(
        about_past or (short and bool(_QUESTION.search(prompt) or is_question(prompt))),
        about_past,
        find_perspective(prompt) is not Perspective.ANYONE
        or bool(_FIRST_PERSON.search(prompt) or _UNSPACED.search(prompt)),
        bool(_HERE.search(prompt)),
        bool(_HOW_TO.search(prompt)),
        frozenset(token for name in _NAME.findall(prompt) for token in tokenize(name)) - STOP_WORDS,
    )


def find_owners(question: str) -> list[frozenset[str]]:
    """The tokens of each owner but the speaker: of everyone and everything to which something in a question belongs."""
    found: list[list[str]] = []
    if len(question) > MAX_QUESTION:
        return []
    for others, head in _OWNER_BEFORE.findall(question):
        # A name needs nothing beside it; "team" is one of several.
        words = tokenize(head if head[0].isupper() else f"{others}{head}")
        found += [words] if words and words[-1] not in _NO_OWNERS else []
    for mine, word, genitive in _OWNER_AFTER.findall(question):
        found += [tokenize(word or genitive)] if mine or genitive or word[0].isupper() else []
    for chinese, japanese in _OWNER_UNSPACED.findall(question):
        owner = chinese or japanese
        tokens = tokenize(owner)
        found += [] if _NO_ONE_ELSE.search(owner) else [tokens[:-1] or tokens]
    return [owner for words in found if (owner := frozenset(words) - STOP_WORDS)]


Confidence = Literal["unsure", "likely", "sure"]
CONFIDENCES: tuple[Confidence, ...] = ("unsure", "likely", "sure")
# In points: a probability of 0.8, and of 0.5.
SURE = 1.4
LIKELY = 0.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """The points of a hit: a constant, and the weight of each measure."""

    constant: float
    weights: Mapping[str, float]


FLOOR_BY_WORDS = Calibration(
    -9.1,
    {
        "density": 2.9, "words": 2.7, "absent": -1.2, "lead": 2.6, "missing_name": -0.9,
        "question": 2.7, "about": 2.1, "here": -0.5, "how_to": -0.6,
    },
)  # fmt: skip
FLOOR_BY_MEANING = Calibration(
    -11.7,
    {
        "density": 2.1, "words": 3.0, "absent": -0.7, "lead": 1.3, "missing_name": -1.1,
        "question": 3.5, "about": 1.9, "here": -0.7, "how_to": -1.1, "meaning": 4.4,
    },
)  # fmt: skip
SEARCH_BY_WORDS = Calibration(-6.1, {"density": 2.5, "words": 1.6, "absent": -0.3, "lead": 4.2})
SEARCH_BY_MEANING = Calibration(-6.1, {"density": 2.0, "words": 1.4, "absent": 0.0, "lead": 3.4, "meaning": 2.1})


MIN_WORDS = 2
# A question, its answer and what led to them count together.
_NEIGHBOURS = 2
MEASURED_WINDOW = WindowShape(_NEIGHBOURS, counted=False)
"""The messages of a hit that are compared with the words of the prompt."""
# Of the hits of a prompt, the first few are measured: no more are shown.
_MAX_MEASURED = 3
_MAX_PROMPT = 2_000
_MEANING = "semantic"
# Operators of a query mean nothing in a prompt.
_OPERATORS = compile_later(r"[\"*()“”]|(?<!\S)-+")
_CONNECTIVES = compile_later(r"\b(?:AND|OR|NOT)\b")


@dataclass(frozen=True, slots=True)
class Relevance:
    """How well the best message of a conversation and its neighbours match a prompt or a query."""

    hit: Hit
    measures: Mapping[str, float]
    share: float
    """How much of the weight of the words the message contains."""
    words: int
    """How many words that name a subject the message and its neighbours contain."""
    points: float
    another: bool = False
    """Whether the message and its neighbours do not mention the owner of what is asked about."""

    @property
    def clears(self) -> bool:
        """Whether the hit clears the relevance floor: by its points, or because it answers the same question."""
        enough = (self.points >= 0 and self.words >= MIN_WORDS) or ASKED_BEFORE in self.hit.signals
        return enough and not self.another


class RelevanceStore(Protocol):
    """The part of a store that is read here: a search, and the messages around a hit."""

    @property
    def find(self) -> Callable[..., SearchResult]: ...
    @property
    def conversations(self) -> Conversations: ...


@dataclass(frozen=True, slots=True)
class PromptRelevance:
    """The result of a search for the words of a prompt, and what its first hits measure."""

    kind: PromptKind
    measured: list[Relevance]
    result: SearchResult

    @property
    def hits(self) -> list[Hit]:
        """The hits that clear the floor, best first, without those that only repeat the prompt.

        A newer statement is shown wherever the older one is that it replaces; of several answers to the prompt, one is.
        """
        found: list[Hit] = []
        newer: Hit | None = None
        for hit, clears in ((relevance.hit, relevance.clears) for relevance in self.measured):
            is_older_answer = ASKED_BEFORE in hit.signals and any(ASKED_BEFORE in other.signals for other in found)
            if clears and not hit.asked and not is_older_answer:
                found += [hit] if newer is None else [newer, hit]
            newer = hit if NEWER_STATEMENT in hit.signals and not clears else None
        return found


def judge_prompt(
    db: RelevanceStore, prompt: str, filters: Filters, *, limit: int, is_own: Callable[[Hit], bool] = lambda hit: False
) -> PromptRelevance:
    """Searches for the words of a prompt and measures the first hits; those that are the caller's own come on top."""
    found = db.find(remove_operators(prompt), filters, limit=limit)
    kind = find_kind(prompt)
    measured: list[Relevance] = []
    if found.hits:
        with db.conversations.view_in_file():
            measured = _measure_first(_Measure(_read_windows(db.conversations, found.hits), found, kind), found, is_own)
    return PromptRelevance(kind, measured, found)


def clears_floor(db: RelevanceStore, judged: PromptRelevance, text: str, lead: float) -> bool:
    """Whether a text beside the conversations clears the floor of a prompt; `lead` is as for a hit."""
    found = judged.result
    if not found.frequencies:
        # No conversation has any of the words.
        found = replace(found, frequencies=(0,) * len(found.query.terms))
    return _Measure(db.conversations, found, judged.kind).clears(text, lead)


def _measure_first(measure: "_Measure", found: SearchResult, is_own: Callable[[Hit], bool]) -> list[Relevance]:
    measured: list[Relevance] = []
    others = 0
    for number, hit in enumerate(found.hits):
        relevance = measure.of(hit, _lead(found.hits, number))
        measured += [relevance] if relevance is not None else []
        others += not is_own(hit)
        if others == _MAX_MEASURED:
            break
    return measured


def _read_windows(store: Conversations, hits: Sequence[Hit]) -> Conversations:
    """The store, of which a server reads the windows of all hits at once."""
    if not store.batches_reads:
        return store
    ahead = ReadAhead(store)
    ahead.read_windows([hit.message_id for hit in hits if hit.message_id is not None], (MEASURED_WINDOW,))
    return ahead


class HitRater:
    """Says how sure it is that a hit of one search contains the evidence."""

    def __init__(self, store: Conversations, found: SearchResult, *, by_time: bool = False) -> None:
        """`by_time`: the hits are not in the order of their scores, so none is ahead of the next."""
        self._by_time = by_time
        self._measure = _Measure(store, found, None)
        self._leads = {
            hit.session_id: 0.0 if by_time else _lead(found.hits, number) for number, hit in enumerate(found.hits)
        }

    def measure(self, hit: Hit) -> Relevance | None:
        """None for a conversation of which only the title matches."""
        return self._measure.of(hit, self._leads[hit.session_id])

    def rate(self, hits: Sequence[Hit]) -> list[Confidence]:
        """How sure each hit is; in the order of relevance, none is surer than the one before."""
        rated = [self._rate(hit) for hit in hits]
        if self._by_time:
            return rated
        return list(accumulate(rated, lambda *both: min(both, key=CONFIDENCES.index)))

    def _rate(self, hit: Hit) -> Confidence:
        """A conversation of which only the title matches is unsure: nothing is known about what it says.

        So is one that says nothing of the owner of what is asked about.
        """
        measured = self.measure(hit)
        if measured is not None and measured.another:
            return "unsure"
        if measured is not None and measured.points >= SURE:
            return "sure"
        asked_before = ASKED_BEFORE in hit.signals
        return "likely" if asked_before or (measured is not None and measured.points >= LIKELY) else "unsure"


def _lead(hits: Sequence[Hit], number: int) -> float:
    """How far a hit is ahead of the next one, as a share of its score.

    What it replaces does not count: an older statement of the same, or an older answer to the same question.
    """
    score = hits[number].score
    replaced = {OLDER_STATEMENT} | ({ASKED_BEFORE} & hits[number].signals.keys())
    following = next((hit.score for hit in hits[number + 1 :] if not replaced & hit.signals.keys()), 0.0)
    return max(0.0, 1 - following / score) if score > 0 else 0.0


def remove_operators(prompt: str) -> str:
    """A prompt as a query: what would be an operator is not one."""
    plain = _OPERATORS.sub(" ", prompt[:_MAX_PROMPT])
    return _CONNECTIVES.sub(lambda match: match[0].lower(), plain)


class _Measure:
    """The words of one prompt or query, and their weights in one store."""

    def __init__(self, store: Conversations, found: SearchResult, kind: PromptKind | None) -> None:
        """`kind` is that of a prompt; None for a search.

        Messages that have a term only because they repeat the prompt do not make it common.
        """
        self._store = store
        self._kind = kind
        size = found.size
        self._weights = {
            term: term_weight(max(0, count - found.asked.get(term.text, 0)), size.messages, framing=term.framing)
            for term, count in zip(found.query.terms, found.frequencies, strict=True)
        }
        self._total = sum(self._weights.values()) or 1.0
        self._average_length = max(1.0, size.tokens / max(1, size.messages))
        # Everyday words of a prompt say what to do; in a search they are meant.
        general = STOP_WORDS if kind is None else STOP_WORDS | EVERYDAY
        self._names = frozenset[str]() if kind is None else kind.names
        self._owners = self._find_owners(found.query)
        self._subjects = [term for term in self._weights if not term.framing and term.token not in general]
        short = found.query.question and len(found.query.text) <= MAX_QUESTION
        self._places = find_places(found.query.text) if short else {}
        self._asked = {term.token for term in self._weights}

    def of(self, hit: Hit, lead: float) -> Relevance | None:
        """None for a hit that only its title matches, or that was deleted."""
        window = None if hit.message_id is None else self._window(hit.message_id)
        if window is None:
            return None
        text = next((_read_text(message) for message in window.messages if message.id == hit.message_id), "")
        tokens = tokenize(text)
        own = frozenset(tokens)
        nearby = own | self._tokens_around(window, hit.message_id, own)
        share, words, measures = self._compare(own, len(tokens), nearby, lead)
        points = self._points(hit.signals.get(_MEANING), measures)
        another = self._is_of_another(text, nearby, may_be_misspelt=ASKED_BEFORE in hit.signals)
        return Relevance(hit, measures, share, words, points, another)

    def _find_owners(self, query: Query) -> list[list[str]]:
        """The rarest word of each owner in the question, with the words that may stand for it."""
        weights = {term.token: weight for term, weight in self._weights.items()}
        owners = find_owners(query.text) if query.question else []
        return [_words_for(max(sorted(owner), key=lambda token: weights.get(token, 0.0))) for owner in owners]

    def _is_of_another(self, text: str, nearby: Set[str], *, may_be_misspelt: bool) -> bool:
        """Whether an owner is not mentioned, or a message is about another one of the same kind.

        A name of a single character may be part of a longer one.
        """
        if self._has_another_word(text, nearby):
            return True
        for name, *others in self._owners:
            mentioned = not nearby.isdisjoint((name, *others)) or (
                is_single_character(name) and any(token.startswith(name) for token in nearby)
            )
            if not mentioned and not (may_be_misspelt and get_close_matches(name, nearby, 1, MISSPELT)):
                return True
        return False

    def _has_another_word(self, text: str, nearby: Set[str]) -> bool:
        """Whether a message has nearly all words of the question, and other words in the places of the rest."""
        subjects = {term.token for term in self._subjects if may_name(term.token)} if self._places else set()
        absent = [word for word in sorted(subjects - EVERYDAY - _TIMES) if nearby.isdisjoint(_words_for(word))]
        said = find_places(text) if 0 < len(absent) <= _MAX_ABSENT else {}
        for word in absent if said else ():
            others = words_in_place(word, self._places, said) - self._asked
            is_similar = others and get_close_matches(word, others, 1, _SIMILAR)
            if others and not is_similar and not get_close_matches(word, nearby, 1, MISSPELT):
                return True
        return False

    def clears(self, text: str, lead: float) -> bool:
        """Whether a text that is in no conversation, and so has no neighbours, clears the floor."""
        tokens = tokenize(text)
        own = frozenset(tokens)
        _, words, measures = self._compare(own, len(tokens), own, lead)
        clears = words >= MIN_WORDS and self._points(None, measures) >= 0
        return clears and not self._is_of_another(text, own, may_be_misspelt=False)

    def _compare(
        self, own: Set[str], length: int, nearby: Set[str], lead: float
    ) -> tuple[float, int, dict[str, float]]:
        """The share of the weight of the words that a message has, how many subjects it names, and the measures."""
        share = sum(weight for term, weight in self._weights.items() if _contains(own, term)) / self._total
        present = [term for term in self._subjects if _contains(nearby, term)]
        by_length = (SATURATION + 1) / (1 + SATURATION * (1 - LENGTH + LENGTH * length / self._average_length))
        measures = {
            "density": share * by_length,
            "words": log(1 + len(present)),
            "absent": log(1 + len(self._subjects) - len(present)),
            "lead": lead,
            **self._measure_names(present, nearby),
        }
        return share, len(present), measures

    def _tokens_around(self, window: Window, message_id: int | None, own: Set[str]) -> set[str]:
        """The tokens of the other messages; of those that have nothing which the hit lacks, none."""
        lacking = [term for term in self._subjects if not _contains(own, term)]
        names = self._names.union(*self._owners) - own
        found: set[str] = set()
        for message in window.messages if lacking or names else ():
            if message.id != message_id:
                text = _read_text(message)
                lower = text.lower()
                if any(_may_contain(lower, term) for term in lacking) or any(may_have_token(lower, n) for n in names):
                    found.update(tokenize(text))
        return found

    def _window(self, message_id: int) -> Window | None:
        return self._store.window_around(message_id, _NEIGHBOURS, counted=False)

    def _measure_names(self, present: Sequence[Term], nearby: Set[str]) -> dict[str, float]:
        """Whether the prompt is about someone's past, or names something that does not occur; and its kind."""
        kind = self._kind
        if kind is None:
            return {}
        named = any(term.token in kind.names for term in present)
        return {
            "missing_name": float(not kind.names <= nearby),
            "question": float(kind.question),
            "about": float(kind.personal or kind.about_past or named),
            "here": float(kind.here),
            "how_to": float(kind.how_to),
        }

    def _points(self, meaning: float | None, measures: dict[str, float]) -> float:
        if meaning is None:
            chosen = SEARCH_BY_WORDS if self._kind is None else FLOOR_BY_WORDS
        else:
            measures["meaning"] = meaning
            chosen = SEARCH_BY_MEANING if self._kind is None else FLOOR_BY_MEANING
        return chosen.constant + sum(weight * measures[name] for name, weight in chosen.weights.items())


def _words_for(token: str) -> list[str]:
    """A word, and those that may stand for it."""
    return [token, *(word for word, close in close_words(token).items() if close > _SAME)]


def _read_text(message: FeedMessage) -> str:
    words = searchable_text(message)
    return f"{words.text}\n{words.tool_text}"


def _may_contain(lower: str, term: Term) -> bool:
    """Whether a text in lower case may contain a term, without dividing it into tokens."""
    pattern = term.pattern
    token = pattern.token if isinstance(pattern, Word) else term.token
    return isinstance(pattern, Prefix) or may_have_token(lower, token)


def _contains(tokens: Set[str], term: Term) -> bool:
    pattern = term.pattern
    if isinstance(pattern, Prefix) or (isinstance(pattern, Word) and is_single_character(pattern.token)):
        return any(token.startswith(pattern.token) for token in tokens)
    return (pattern.token if isinstance(pattern, Word) else term.token) in tokens


def read_evidence(
    store: Conversations, hits: Sequence[Hit], query: Query, in_context: Collection[int], *, by_time: bool
) -> Conversations:
    """The conversations to take the evidence of these hits from.

    In a file that is the store itself. `by_time`: no other message of a session replaces the best match.
    """
    if not store.batches_reads:
        return store
    ahead, without = ReadAhead(store), frozenset(in_context)
    anchors = {hit.message_id for hit in hits if hit.message_id is not None}
    ranked = {number for hit in hits if len(hit.messages) > 1 for number, _ in hit.messages}
    shapes = (MEASURED_WINDOW, WindowShape(WINDOW, CONVERSATION_ROLES, without))
    ends = EndsShape(BOOKEND, CONVERSATION_ROLES, without)
    session_ids = [hit.session_id for hit in hits]
    ahead.read_windows(anchors, shapes, ends, messages=anchors | ranked, session_ids=session_ids)
    if not by_time:
        messages = ahead.known_messages(ranked)
        spoken = {
            weighed.order[0]
            for hit in hits
            if hit.message_id is not None
            and len(hit.messages) > 1
            and not hit.asked
            and (weighed := weigh_messages(hit.messages, messages, query)).by_speaker
        }
        ahead.read_windows(spoken, shapes, ends)
    return ahead
