"""Finds earlier messages that only repeat the query or an older answer, and ranks sessions without them.

The record contains every question that was ever asked. A repeated question has all the words of the query, and is short
and recent, so it always matches best. If its reply says something of its own, that is right, and of several replies to
the same question the first comes first, or the newest that gives another value. If there was no reply, or one that only
denies or repeats what an older conversation said, the turn does not count; one session represents all such turns, if no
asking was answered.

An assistant's answer that mostly repeats an older message comes from a turn that recalled something. It is newer than
what it quotes and often shorter, so it would match better. `RepeatedQuestions` ranks without it, and counts it at the
session that said it first.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import takewhile
from operator import itemgetter, sub
from types import MappingProxyType
from typing import NamedTuple

from memoranda.memory.record.feed import FeedMessage
from memoranda.search import ranking
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, TITLE, TOOL, USER, IndexSize, Posting, Word
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.tokenizer import is_unspaced, tokenize
from memoranda.search.query import FRAMING, Query, Term, content_words, is_question
from memoranda.search.ranking import AdjacentTerms, MaskValues, Matches, RankingContext, SessionScore
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

# A text repeats another if it has this much of the shorter one's sequences, and that is not very short.
_MIN_SHARED = 0.6
_MIN_SEQUENCES = 5
_MAX_CHARACTERS = 4_000
"""The beginning of a longer text is compared."""
_FIRST = 6
"""If none of the first results repeats another, the others are not read."""
_MAX_COMPARED = 400
_MIN_TERMS = 0.5
_by_time = itemgetter(5, 0)
_NUMBERS = compile_later(r"\d+")


def sequences(text: str) -> frozenset[int]:
    """The runs of three tokens in a text, as hashes; texts that share many of them repeat each other."""
    tokens = tokenize(text)
    return frozenset(map(hash, zip(tokens, tokens[1:], tokens[2:], strict=False)))


_cached_sequences = lru_cache(maxsize=2_000)(sequences)


def find_repetitions(reader: IndexReader, scores: Sequence[SessionScore], matches: Matches) -> dict[Posting, Posting]:
    """The matching messages that repeat an older one, each with that one."""
    first = [score.best for score in scores[:_FIRST] if _may_count(score.best)]
    found = _compare(reader, first) if len(first) > 1 and any(row.role == ASSISTANT for row in first) else {}
    if not found:
        return {}
    typed = matches.typed
    terms = {row.message: (mask & typed).bit_count() for row, mask in matches.rows}
    rows = {row.message: row for row, mask in matches.rows if mask & typed and _may_count(row)}
    # Where only related words were found, there are no rows.
    minimum = _MIN_TERMS * max((terms[message] for message in rows), default=0)
    some = [row for message, row in rows.items() if terms[message] >= minimum]
    some.sort(key=lambda row: (-terms[row.message], row.time))
    found |= _compare(reader, some[:_MAX_COMPARED])
    # Where both the prompt and its answer are repetitions, neither competes.
    sessions = {row.session for row in found}
    prompts = [row for row in rows.values() if row.role == USER and row.session in sessions]
    return found | _compare(reader, prompts[:_MAX_COMPARED], USER)


def count_sessions(repeated: Mapping[Posting, Posting]) -> dict[int, int]:
    """How many sessions repeat each session."""
    return Counter(original for original, _ in {(older.session, row.session) for row, older in repeated.items()})


def _may_count(row: Posting) -> bool:
    return row.role not in (TITLE, TOOL)


def _compare(reader: IndexReader, rows: Iterable[Posting], role: int = ASSISTANT) -> dict[Posting, Posting]:
    """The rows of a role that repeat an older one of another session."""
    ordered = sorted(rows, key=_by_time)
    messages = reader.messages([row.message for row in ordered])
    owners: dict[int, int] = {}
    lengths: list[int] = []
    texts: list[str] = []
    found: dict[Posting, Posting] = {}
    for number, row in enumerate(ordered):
        message = messages.get(row.message)
        texts.append("" if message is None else searchable_text(message).text[:_MAX_CHARACTERS])
        own = _cached_sequences(texts[-1])
        lengths.append(len(own))
        if len(own) < _MIN_SEQUENCES:
            continue
        shared = own & owners.keys() if row.role == role else ()
        if len(shared) >= _MIN_SHARED * _MIN_SEQUENCES:
            older, count = Counter(owners[sequence] for sequence in shared).most_common(1)[0]
            is_much = count >= _MIN_SHARED * min(len(own), lengths[older])
            # A text with another number says something else: a fact that changed.
            is_same = set(_NUMBERS.findall(texts[-1])).issubset(_NUMBERS.findall(texts[older]))
            if is_much and is_same and ordered[older].session != row.session:
                found[row] = ordered[older]
                continue
        owners.update(dict.fromkeys(own.difference(owners), number))
    return found


# A repeated question is not much longer than the query, and shares this many words.
_MAX_LENGTH_FACTOR = 2
_MAX_LENGTH_EXTRA = 6
_MIN_SHARED_WITH_QUERY = 0.5
_MIN_SHARED_PAIRS = 0.4
"""Of scripts without spaces, where a changed word changes the pairs of characters beside it."""
_MIN_SHARED_WORDS = 2
_MIN_KEYWORDS = 0.6
"""Of the words of a query that is no question; a question has small words of its language, too."""
MISSPELT = 0.8
_SAME_QUESTION = 0.75
"""What two askings share whose replies compete; others may ask for something else."""
# A text that is not a question repeats one if it has exactly the same words, and more than this many.
_FEW_WORDS = 2
_MAX_ROWS = 2_000
_MAX_CACHED = 500
# A turn ends before the next message of the user that matches, or after this many messages.
TURN = 12
# The replies to the oldest and to the newest askings are read.
_MAX_OLDEST, _MAX_NEWEST = 10, 30
# What answers elsewhere covers this much of the query; the best few are compared with the replies.
_MIN_COVERAGE = 0.5
_MAX_ELSEWHERE = 3
_TERSE, _TERSE_WORDS = 24, 3
"""The letters and the words of a terse reply: one terse reply replaces another."""
_MIN_SHARED_WITH_ANSWER = 0.25
"""How many words of a longer reply are in the answer that it replaces."""
_MAX_REFUSAL = 120
"""A longer sentence says something, whatever it denies."""
_SENTENCES = compile_later(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
# In Greek, a semicolon asks.
_SENTENCE_END = compile_later(r"(?:[?？؟]|(?<=[\u0370-\u03ff]);)\s*[\"”’')\]]*\s*$")
_OPENINGS = compile_later(
    r"\W*(?:(?:so|and|hey|hi|hello|ok|okay|please|again)\W+)*"
    r"(?:how|what|when|where|who|why|which|whose|did|do|does|is|are|was|were|can|could|have|has|had|will|would|should"
    r"|remind me|tell me|show me|do you (?:remember|know)|wie|wann|wo|wer|warum|wieso|welche[rsnm]?|haben|hat|kannst"
    r"|comment|quand|où|pourquoi|quel(?:le)?s?|est-ce|qué|cómo|cuándo|dónde|quién|por qué|cuál|quando|onde|quem)\b",
    re.IGNORECASE,
)
# The words of negation, which are few in every language.
_NEGATION = compile_later(
    r"\b(?:no|not|never|none|nothing|cannot|unable|[a-z]+n['’]t|nicht|nichts|kein\w{0,2}|pas|rien|aucun\w{0,2}|nada"
    r"|ning[uú]n\w{0,2}|non|não|nenhum\w{0,2}|niet|geen|не|нет|ничего)\b|[不没沒无無]|ない|ません|なかった|없|않|못",
    re.IGNORECASE,
)
# How a reply speaks of the assistant itself, and of what it does or cannot do: "I", "my", "posso".
_OF_ITSELF = compile_later(
    r"\b(?:i|i['’](?:m|ll|ve|d)|me|my|ich|mir|mich|mein\w*|je|me|mi|voy|puedo|tengo|veo|sé|posso|vou|tenho|vejo|não sei"
    r"|ho|trovo|vedo|controllo|siento|dispiace|desculp\w*|désolée?|sorry)\b|\bj['’]|我(?!们|們|家)|[私僕]",
    re.IGNORECASE,
)


def is_asking(text: str) -> bool:
    """Whether a text asks something, as far as its punctuation and its first words tell."""
    text = text.strip()
    if _SENTENCE_END.search(text) or _OPENINGS.match(text):
        return True
    # Interrogatives of unspaced scripts occur in statements too, which end with a full stop.
    return is_question(re.split("[。！\n]", text)[-1]) or text.endswith(("か。", "吗。", "嗎。"))


def own_words(reply: str, question: Collection[str]) -> frozenset[str]:
    """What a reply says that its question does not, or which of its words it chooses.

    A question says nothing, and neither does a short sentence in which the assistant denies something of itself.
    """
    sentences = [part for part in _SENTENCES.split(reply[:_MAX_CHARACTERS]) if not _says_nothing(part)]
    said = content_words(" ".join(sentences)) - FRAMING
    chosen = said if 2 * len(said) <= len(question) else frozenset[str]()
    return said.difference(question) or chosen


def _says_nothing(sentence: str) -> bool:
    refuses = _NEGATION.search(sentence) and _OF_ITSELF.search(sentence)
    return len(sentence) <= _MAX_REFUSAL and bool(refuses or _SENTENCE_END.search(sentence))


def _is_certain(reply: str) -> bool:
    """Whether the first sentence of a reply neither asks something nor speaks of the assistant itself."""
    first = next(filter(str.strip, _SENTENCES.split(reply)), "")
    return not (_SENTENCE_END.search(first) or _OF_ITSELF.search(first))


def reply_in(messages: Iterable[FeedMessage]) -> FeedMessage | None:
    """Of the messages that follow a question, the last of the assistant before the next turn that says anything."""
    turn = takewhile(lambda message: message.role != "user", messages)
    replies = [message for message in turn if message.role == "assistant" and searchable_text(message).text.strip()]
    return replies[-1] if replies else None


@lru_cache(maxsize=2_000)
def _read_question(text: str) -> tuple[frozenset[str], bool]:
    """The words of a short text, and whether it only asks: the same questions are met by search after search."""
    sentences = _SENTENCES.split(text)
    states = len(sentences) > 1 and any(
        not is_asking(sentence) and len(content_words(sentence)) > _FEW_WORDS for sentence in sentences
    )
    return content_words(text), is_asking(text) and not states


def _shared_part(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / (len(left | right) or 1)


def _likeness(left: frozenset[str], right: frozenset[str]) -> float:
    """The share of words that two questions have in common; a misspelt word counts."""
    others = [word for word in right - left if word.isalpha()]
    alike = sum(bool(get_close_matches(word, others, 1, MISSPELT)) for word in left - right if word.isalpha())
    common = len(left & right) + alike
    return common / (len(left) + len(right) - common or 1)


def _replaces(newer: frozenset[str], older: frozenset[str]) -> bool:
    """Whether a reply looks like another value of what an older one said, and not like a failure to answer.

    A failure takes more words than a value, and few of them are in the answer.
    """
    if len(newer & older) >= _MIN_SHARED_WITH_ANSWER * len(newer):
        return True
    with_number = [any(map(_has_digit, words)) for words in (newer, older)]
    # A name takes the place of a name, and a number that of a number, or of many words without one.
    return _is_terse(newer) and with_number[0] == (with_number[1] or not _is_terse(older))


def _is_terse(words: frozenset[str]) -> bool:
    return len(words) <= _TERSE_WORDS and sum(map(len, words)) <= _TERSE


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


class RankedSessions(NamedTuple):
    """Sessions, best first, and how many messages that only ask were subtracted from each term's frequency."""

    scores: list[SessionScore]
    asked: tuple[int, ...] = ()


class _Answered(NamedTuple):
    """An asking, and what its reply says of its own."""

    row: Posting
    own: frozenset[str]
    certain: bool


@dataclass(slots=True)
class RepeatedQuestions:
    """The messages that only repeat the question of one query, and the sessions ranked without them."""

    query: Query
    reader: IndexReader
    enabled: bool = True
    """Ordered by time, and for what is meant literally, every message counts."""
    _words: frozenset[str] = frozenset()
    _length: int = 0
    _read: dict[int, FeedMessage] = field(default_factory=dict)
    _known: dict[int, frozenset[str] | None] = field(default_factory=dict)
    """The words of the questions that were read; None for a message that asks nothing."""

    def __post_init__(self) -> None:
        self._words = content_words(self.query.text)
        # A single word asks nothing: a search for it lists every session that has it.
        self.enabled = self.enabled and len(self._words) >= _MIN_SHARED_WORDS
        self._length = _MAX_LENGTH_FACTOR * len(tokenize(self.query.text)) + _MAX_LENGTH_EXTRA

    def rank(
        self,
        matches: Matches,
        pairs: Sequence[AdjacentTerms],
        size: IndexSize,
        context: RankingContext,
        terms: Sequence[Term] = (),
        *,
        every: bool = False,
    ) -> RankedSessions:
        """Like `ranking.rank`, without the turns that only repeat a question, and without repeated texts.

        `terms` are those of the matches. Without them, every match has all of the query.
        """
        rank = partial(self._rank_without, matches=matches, pairs=pairs, size=size, context=context, every=every)
        askings = self._find(self._similar(matches, terms)) if self.enabled else []
        found = rank(askings)
        answered = self._find_answered(askings, found.scores, size)
        unanswered = [row for row in askings if row not in {one.row for one in answered}]
        if answered:
            found = rank(unanswered)
        if self.enabled and len(found.scores) > 1:
            repeated = find_repetitions(self.reader, found.scores, matches)
            found = rank(unanswered, repeated) if repeated else found
        self._put_current_answer_first(found.scores, answered)
        if unanswered and not answered:
            self._add_asking(found.scores, unanswered, matches, size, context)
        return found

    def _rank_without(
        self,
        unanswered: Sequence[Posting],
        repeated: Mapping[Posting, Posting] = MappingProxyType({}),
        *,
        matches: Matches,
        pairs: Sequence[AdjacentTerms],
        size: IndexSize,
        context: RankingContext,
        every: bool,
    ) -> RankedSessions:
        if not unanswered and not repeated:
            return RankedSessions(ranking.rank(matches, pairs, size, context, every=every))
        sessions = {row.session for row in unanswered}
        places = _places(matches.in_sessions(sessions), unanswered)
        places |= {(row.session, row.ordinal) for row in repeated}
        kept, asked = _remove(matches, places)
        pairs = [
            replace(pair, postings=[row for row in pair.postings if (row.session, row.ordinal) not in places])
            for pair in pairs
        ]
        scores = ranking.rank(kept, pairs, size, context, every=every)
        counts = count_sessions(repeated)
        return RankedSessions([score._replace(repeated=counts.get(score.session, 0)) for score in scores], asked)

    def _find_answered(
        self, askings: Sequence[Posting], elsewhere: Sequence[SessionScore], size: IndexSize
    ) -> list[_Answered]:
        """The askings whose reply says something that neither the last one nor an older conversation said, by time."""
        replies = self._read_replies(askings)
        replied = [
            _Answered(row, own, _is_certain(reply))
            for row in askings
            if (reply := replies.get(row.message)) and (own := own_words(reply, self._asked(row)))
        ]
        if not replied:
            return []
        older = self._read_elsewhere(elsewhere)
        self.reader.prepare(Word(word) for one in replied for word in one.own)
        answered: list[_Answered] = []
        for one in replied:
            known = [words for time, session, words in older if time < one.row.time and session != one.row.session]
            same = [last for last in answered if self._ask_the_same(last, one)]
            known += [same[-1].own] if same else []
            everything = sum(self._weights(one.own, size))
            # Another number is another answer.
            if all(
                any(map(_has_digit, one.own - words))
                or sum(self._weights(one.own - words, size)) > (1 - _MIN_SHARED) * everything
                for words in known
            ):
                answered.append(one)
        return answered

    def _asked(self, row: Posting) -> frozenset[str]:
        return self._known[row.message] or frozenset()

    def _ask_the_same(self, one: _Answered, other: _Answered) -> bool:
        return _likeness(self._asked(one.row), self._asked(other.row)) >= _SAME_QUESTION

    def _weights(self, words: Iterable[str], size: IndexSize) -> list[float]:
        """How much each word says, by how rare it is here: what everyone says all the time is worth little."""
        return [ranking.term_weight(self.reader.frequency(Word(word)), size.messages, framing=False) for word in words]

    def _read_elsewhere(self, scores: Sequence[SessionScore]) -> list[tuple[float, int, frozenset[str]]]:
        """When, where and in which words the best conversations answer the query in which it was not asked."""
        best = [score.best for score in scores if _answers(score)][:_MAX_ELSEWHERE]
        found = []
        for message in self.reader.messages([row.message for row in best]).values():
            row = next(row for row in best if row.message == message.id)
            near = self.reader.messages_from(message.session_id, max(0, message.id - TURN), 2 * TURN)
            words = frozenset(word for one in near for word in tokenize(searchable_text(one).text))
            found.append((row.time, row.session, words))
        return found

    def _read_replies(self, askings: Sequence[Posting]) -> dict[int, str]:
        """The replies to the oldest and the newest askings, by the ids of the askings."""
        some = {row.message for row in (*askings[:_MAX_OLDEST], *askings[-_MAX_NEWEST:])}
        # Mostly a turn has consecutive ids.
        turns = {number: range(number + 1, number + 1 + TURN) for number in some}
        near = self.reader.messages([name for turn in turns.values() for name in turn]) if some else {}
        replies: dict[int, str] = {}
        for number, turn in turns.items():
            session = self._read[number].session_id
            following = [near[name] for name in turn if name in near and near[name].session_id == session]
            reply = reply_in(following or self.reader.messages_from(session, number + 1, TURN))
            if reply is not None:
                replies[number] = searchable_text(reply).text
        return replies

    def _put_current_answer_first(self, scores: list[SessionScore], answered: Sequence[_Answered]) -> None:
        """Of the sessions that answer the same question, put the first one first, or the newest that replaces it."""
        places = {score.session: place for place, score in enumerate(scores)}
        asked = {one.row.session: self._asked(one.row) for one in answered}
        alike = {session: _likeness(self._words, words) for session, words in asked.items() if session in places}
        if not alike:
            return
        # Keywords name a part of a question, so the best match says which one is meant.
        meant = asked[min(alike, key=lambda session: (alike[session] < _SAME_QUESTION, places[session]))]
        same = [
            one
            for one in answered
            if one.row.session in alike and _likeness(meant, asked[one.row.session]) >= _SAME_QUESTION
        ]
        chosen = next((one for one in same if one.certain), same[0])
        for newer in same[same.index(chosen) + 1 :]:
            if newer.certain and _replaces(newer.own, chosen.own):
                chosen = newer
        sessions = {one.row.session for one in same}
        compared = [place for place, score in enumerate(scores) if score.session in sessions]
        ordered = sorted((scores[place] for place in compared), key=lambda score: score.session != chosen.row.session)
        for place, score, value in zip(compared, ordered, [scores[place].score for place in compared], strict=True):
            likeness = alike[score.session]
            signals = {**score.signals, **({ASKED_BEFORE: likeness} if likeness >= _SAME_QUESTION else {})}
            scores[place] = score._replace(score=value, signals=signals)

    def _add_asking(
        self,
        scores: list[SessionScore],
        rows: Sequence[Posting],
        matches: Matches,
        size: IndexSize,
        context: RankingContext,
    ) -> None:
        """Adds one of the sessions that only ask, after those that answer."""
        first = {row.session: row for row in reversed(rows)}
        known = {score.session for score in scores if _answers(score)}
        asking = [row for row in first.values() if row.session not in known]
        if not asking:
            return
        row = asking[0]
        scores[:] = [score for score in scores if score.session not in first or score.session in known]
        (score,) = ranking.rank(matches.in_sessions({row.session}), (), size, context)
        place = next((number for number, other in enumerate(scores) if not _answers(other)), len(scores))
        value = min(score.score, scores[place - 1].score) if place else score.score
        signals = {**score.signals, "asked": float(len(first))}
        scores.insert(place, score._replace(score=value, best=row, signals=signals, asked=len(first)))

    def _similar(self, matches: Matches, terms: Sequence[Term]) -> Iterable[Posting]:
        """The short messages of the user that may share enough words with the query to repeat it."""
        everything = len(self._words)
        # A term without a token stands for several words.
        counts = [int(term.token in self._words) if term.token else everything for term in terms]
        unknown = self._words.difference(term.token for term in self.query.terms)
        minimum = max(_MIN_SHARED_PAIRS * everything - len(unknown), _MIN_SHARED_WORDS)
        length = self._length
        shared = MaskValues(counts or [everything] * len(matches.terms))
        short = (row for row, mask in matches.rows if row[4] <= length and row[3] == USER and shared[mask] >= minimum)
        return {row[0]: row for row in short}.values()

    def _find(self, rows: Iterable[Posting]) -> list[Posting]:
        """The rows that repeat the query, oldest first."""
        some = sorted(rows, key=_by_time)[-_MAX_ROWS:]
        self._read_questions([row.message for row in some if row.message not in self._known])
        return [row for row in some if (asked := self._known[row.message]) and self._repeats(asked)]

    def _read_questions(self, numbers: Sequence[int]) -> None:
        messages = self.reader.messages(numbers) if numbers else {}
        for number in numbers:
            message = messages.get(number)
            text = "" if message is None else searchable_text(message).text
            words, asks = _read_question(text) if len(text) <= _MAX_CACHED else (frozenset[str](), False)
            same = self.query.question and words == self._words and len(words) > _FEW_WORDS
            self._known[number] = words if same or asks else None
        self._read |= messages

    def _repeats(self, words: frozenset[str]) -> bool:
        """Whether a question with these words asks nearly the same as the query."""
        minimum = _MIN_SHARED_PAIRS if any(map(is_unspaced, words)) else _MIN_SHARED_WITH_QUERY
        shared = len(words & self._words)
        is_part = not self.query.question and shared >= _MIN_KEYWORDS * len(self._words)
        return shared >= _MIN_SHARED_WORDS and (is_part or _shared_part(words, self._words) >= minimum)


ASKED_BEFORE = "asked_before"
"""Signal of a score: it answers the same question, as a share of the words."""


def _answers(score: SessionScore) -> bool:
    """Whether a session covers most of the query; a title alone may come from the question."""
    return score.best.role != TITLE and score.signals["coverage"] >= _MIN_COVERAGE


def _places(matches: Matches, questions: Sequence[Posting]) -> frozenset[tuple[int, int]]:
    """The sessions and ordinals of the questions, and of the messages that follow until the user's next message.

    `matches` are those in the sessions of the questions.
    """
    users = {(row.session, row.ordinal) for row, _ in matches.rows if row.role == USER}
    found: set[tuple[int, int]] = set()
    for question in questions:
        for ordinal in range(question.ordinal, question.ordinal + TURN):
            if ordinal != question.ordinal and (question.session, ordinal) in users:
                break
            found.add((question.session, ordinal))
    return frozenset(found)


def _remove(matches: Matches, places: Collection[tuple[int, int]]) -> tuple[Matches, tuple[int, ...]]:
    """The matches elsewhere, and how many are at these places, by term."""
    kept = Matches(matches.terms, [row for row in matches.rows if (row[0][1], row[0][2]) not in places])
    counts = kept.count_rows()
    removed = tuple(map(sub, matches.count_rows(), counts))
    terms = [
        replace(term, frequency=max(count, term.frequency - gone))
        for term, count, gone in zip(matches.terms, counts, removed, strict=True)
    ]
    return replace(kept, terms=terms), removed
