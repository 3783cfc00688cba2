"""Finds earlier messages that only repeat the query or an older answer, and ranks sessions without them.

The record contains every question that was ever asked. A repeated question has all the words of the query, and is short
and recent, so it would always match best, although it does not answer itself. So the turns that begin with a repeated
question are ranked separately: one session represents all of them, after the older sessions that have its words in
other messages.

An assistant's answer that mostly repeats an older message comes from a turn that recalled something. It is newer than
what it quotes and often shorter, so it would match better. `RepeatedQuestions` ranks without it, and counts it at the
session that said it first.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from operator import itemgetter, sub
from types import MappingProxyType
from typing import NamedTuple

from memoranda.memory.record.feed import FeedMessage
from memoranda.search import ranking
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, TITLE, TOOL, USER, IndexSize, Posting
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.tokenizer import STOP_WORDS, is_single_character, is_unspaced, tokenize
from memoranda.search.query import FRAMING, Query, Term, is_question
from memoranda.search.ranking import AdjacentTerms, MaskValues, Matches, RankingContext, SessionScore

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


def sequences(text: str) -> frozenset[int]:
    """The runs of three tokens in a text, as hashes; texts that share many of them repeat each other."""
    tokens = tokenize(text)
    return frozenset(map(hash, zip(tokens, tokens[1:], tokens[2:], strict=False)))


_cached_sequences = lru_cache(maxsize=2_000)(sequences)


def find_repetitions(
    reader: IndexReader, scores: Sequence[SessionScore], matches: Matches, skipped: Collection[int]
) -> dict[Posting, Posting]:
    """The matching messages that repeat an older one, each with that one; those of `skipped` sessions do not count."""
    first = [score.best for score in scores[:_FIRST] if _may_count(score.best, skipped)]
    found = _compare(reader, first) if len(first) > 1 and any(row.role == ASSISTANT for row in first) else {}
    if not found:
        return {}
    typed = matches.typed
    terms = {row.message: (mask & typed).bit_count() for row, mask in matches.rows}
    rows = {row.message: row for row, mask in matches.rows if mask & typed and _may_count(row, skipped)}
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


def _may_count(row: Posting, skipped: Collection[int]) -> bool:
    return row.role not in (TITLE, TOOL) and row.session not in skipped


def _compare(reader: IndexReader, rows: Iterable[Posting], role: int = ASSISTANT) -> dict[Posting, Posting]:
    """The rows of a role that repeat an older one of another session."""
    ordered = sorted(rows, key=_by_time)
    messages = reader.messages([row.message for row in ordered])
    owners: dict[int, int] = {}
    lengths: list[int] = []
    found: dict[Posting, Posting] = {}
    for number, row in enumerate(ordered):
        message = messages.get(row.message)
        text = "" if message is None else searchable_text(message).text[:_MAX_CHARACTERS]
        own = _cached_sequences(text)
        lengths.append(len(own))
        if len(own) < _MIN_SEQUENCES:
            continue
        shared = own & owners.keys() if row.role == role else ()
        if len(shared) >= _MIN_SHARED * _MIN_SEQUENCES:
            older, count = Counter(owners[sequence] for sequence in shared).most_common(1)[0]
            if count >= _MIN_SHARED * min(len(own), lengths[older]) and ordered[older].session != row.session:
                found[row] = ordered[older]
                continue
        owners.update(dict.fromkeys(own - owners.keys(), number))
    return found


# A repeated question is not much longer than the query, and shares this many words.
_MAX_LENGTH_FACTOR = 2
_MAX_LENGTH_EXTRA = 6
_MIN_SHARED_WITH_QUERY = 0.5
_MIN_SHARED_PAIRS = 0.4
"""Of scripts without spaces, where a changed word changes the pairs of characters beside it."""
_MIN_SHARED_WITH_KEYWORDS = 0.6
"""Different questions may share few keywords."""
_MIN_SHARED_WORDS = 2
# A text that is not a question repeats one if it has exactly the same words, and more than this many.
_FEW_WORDS = 2
_MAX_ROWS = 2_000
_MAX_CACHED = 500
# A turn ends before the next message of the user that matches, or after this many messages.
_TURN = 12
_NEXT = 2
# A session answers if it covers this much of the query, and its score is at least this share of the best one.
_MIN_COVERAGE = 0.5
_MIN_SHARE_OF_BEST = 0.5
_MAX_READ = 8
_MIN_NEW_WORDS = 2
_MAX_OLDER = 3
_MIN_LONG_ANSWER = 30
_MIN_NEW_SHARE = 0.5
_MAX_NO_ANSWER = 400
_BEGINNING = 300
_SENTENCE_END = re.compile(r"[?？؟;]\s*[\"”’')\]]*\s*$")
_OPENINGS = re.compile(
    r"\W*(?:(?:so|and|hey|hi|hello|ok|okay|please|again)\W+)*"
    r"(?:how|what|when|where|who|why|which|whose|did|do|does|is|are|was|were|can|could|have|has|had|will|would|should"
    r"|remind me|tell me|show me|do you (?:remember|know)|wie|wann|wo|wer|warum|wieso|welche[rsnm]?|haben|hat|kannst"
    r"|comment|quand|où|pourquoi|quel(?:le)?s?|est-ce|qué|cómo|cuándo|dónde|quién|por qué|cuál|quando|onde|quem)\b",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"\b(?:(?:do(?:es)?|did|could|can)(?: not|n['’]t)|cannot|unable to) (?:know|find|recall|remember|have)\b"
    r"|\b(?:found|find|know|have|recall|remember) (?:nothing|no )|\bno (?:record|memory|idea)\b|\bnot sure\b"
    r"|不知道|找不到|没有?找到|沒有?找到|不记得|不記得|没有(?:相关|任何|关于)|わかりません|分かりません|見つかりません|見つからな|覚えていません",
    re.IGNORECASE,
)
# Every text that matches it contains one of these.
_DENIALS = ("n't", "n’t", "not", "unable", " no ", "no record", "no memory", "no idea", *"不没沒らま")


def is_asking(text: str) -> bool:
    """Whether a text asks something, as far as its punctuation and its first words tell."""
    text = text.strip()
    if _SENTENCE_END.search(text) or _OPENINGS.match(text):
        return True
    # Interrogatives of unspaced scripts occur in statements too, which end with a full stop.
    return is_question(re.split("[。！\n]", text)[-1]) or text.endswith(("か。", "吗。", "嗎。"))


def content_words(text: str) -> frozenset[str]:
    """The tokens of a text without stop words, framing words and single characters of unspaced scripts."""
    words = frozenset(tokenize(text)) - STOP_WORDS
    if not text.isascii():
        words = frozenset(word for word in words if not is_single_character(word))
    return words - FRAMING or words


def is_answer(text: str, question: Iterable[str]) -> bool:
    """Whether a reply says something that the words of its question do not, and not only that nothing is known."""
    if len(text) <= _MAX_NO_ANSWER and _may_deny(text.lower()) and _NO_ANSWER.search(text):
        return False
    # The first words of a long reply are mostly enough.
    beginning = text[:_BEGINNING].rpartition(" ")[0] if len(text) > 2 * _BEGINNING else ""
    return any(len(content_words(part).difference(question)) >= _MIN_NEW_WORDS for part in (beginning, text) if part)


def _may_deny(lower: str) -> bool:
    """Whether a text contains any word of `_NO_ANSWER`; most do not, and this is faster."""
    return any(map(lower.__contains__, _DENIALS))


def answer_in(messages: Sequence[FeedMessage], question: str) -> FeedMessage | None:
    """Of the messages that follow a question, the first of the assistant that answers it; None before the next turn."""
    words = content_words(question)
    for message in messages:
        if message.role == "user":
            break
        if message.role == "assistant" and is_answer(searchable_text(message).text, words):
            return message
    return None


@lru_cache(maxsize=2_000)
def _read_question(text: str) -> tuple[frozenset[str], bool]:
    """The words of a short text, and whether it asks something: the same questions are met by search after search."""
    return content_words(text), is_asking(text)


def _shared_part(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / (len(left | right) or 1)


class RankedSessions(NamedTuple):
    """Sessions, best first, and how many messages that only ask were subtracted from each term's frequency."""

    scores: list[SessionScore]
    asked: tuple[int, ...] = ()


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

    def without(self, rows: Sequence[Posting]) -> list[Posting]:
        """The rows that do not repeat the query; all rows contain all of its words."""
        if not self.enabled:
            return list(rows)
        repeated = {row.message for row in self._find(row for row in rows if self._may_repeat(row))[0]}
        return [row for row in rows if row.message not in repeated]

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
        """Like `ranking.rank`, with one session for all repetitions of a question, and without repeated texts.

        `terms` are those of the matches. Without them, every match has all of the query.
        """
        asking, copies = self._find(self._similar(matches, terms)) if self.enabled else ([], [])
        rank = partial(self._rank_without, matches=matches, pairs=pairs, size=size, context=context, every=every)
        found = rank(asking, copies)
        if len({row.session for row in asking}) == 1 and self._says_new(asking[-1], found.scores):
            asking = []
            found = rank(asking, copies)
        if not self.enabled or len(found.scores) < 2:
            return found
        repeated = find_repetitions(self.reader, found.scores, matches, {row.session for row in copies})
        return rank(asking, copies, repeated) if repeated else found

    def _rank_without(
        self,
        asking: Sequence[Posting],
        copies: Sequence[Posting],
        repeated: Mapping[Posting, Posting] = MappingProxyType({}),
        *,
        matches: Matches,
        pairs: Sequence[AdjacentTerms],
        size: IndexSize,
        context: RankingContext,
        every: bool,
    ) -> RankedSessions:
        """Ranks without the turns of these questions and repetitions, then adds one of the sessions that only ask."""
        questions = [*asking, *copies]
        if not questions and not repeated:
            return RankedSessions(ranking.rank(matches, pairs, size, context, every=every))
        sessions = {row.session for row in questions}
        beside = matches.in_sessions(sessions)
        turns = _turns(beside, questions) | {(row.session, row.ordinal) for row in repeated}
        kept, asked = _remove(matches, sessions | {row.session for row in repeated}, turns)
        left, numbers = kept.only_occurring()
        scores = ranking.rank(left, _renumber(pairs, numbers, turns), size, context, every=every)
        if len(numbers) < len(matches.terms):
            scores = _restore_terms(scores, numbers)
        answering = {score.session for score in scores if _answers(score)}
        only_asking = sessions - answering
        counts = count_sessions(repeated) if repeated else {}
        scores = [
            score._replace(repeated=counts.get(score.session, 0))
            for score in scores
            if score.session not in only_asking
        ]
        if first := {row.session: row for row in asking if row.session in only_asking}:
            self._insert(scores, sorted(first.values(), key=_by_time), beside, size, context)
        return RankedSessions(scores, asked)

    def _insert(
        self,
        scores: list[SessionScore],
        rows: Sequence[Posting],
        matches: Matches,
        size: IndexSize,
        context: RankingContext,
    ) -> None:
        """Adds one of the sessions that only ask, after the older ones that answer, however well it matches."""
        row = self._choose(rows)
        (score,) = ranking.rank(matches.in_sessions({row.session}), (), size, context)
        minimum = _MIN_SHARE_OF_BEST * max((other.score for other in scores), default=0.0)
        index = 0
        for number, other in enumerate(scores, 1):
            answers = other.score >= minimum and _answers(other) and other.best.time < row.time
            if answers or other.score > score.score:
                index = number
        value = score.score if not index else min(score.score, scores[index - 1].score)
        signals = {**score.signals, "asked": float(len(rows))}
        scores.insert(index, score._replace(score=value, best=row, signals=signals, asked=len(rows)))

    def _choose(self, rows: Sequence[Posting]) -> Posting:
        """The first repetition that got an answer; if none did, the first one."""
        some = rows[:_MAX_READ] if len(rows) > 1 else ()
        return next((row for row in some if self._answer_to(row) is not None), rows[0])

    def _answer_to(self, row: Posting) -> FeedMessage | None:
        """What answers a question that was read; mostly that is the next message."""
        question = self._read[row.message]
        text = searchable_text(question).text
        found: list[FeedMessage] = []
        for limit in (_NEXT, _TURN):
            found += self.reader.messages_from(question.session_id, (found or [question])[-1].id + 1, limit)
            answer = answer_in(found, text)
            if answer is not None or len(found) < limit or any(message.role == "user" for message in found):
                return answer
        return None

    def _says_new(self, row: Posting, scores: Sequence[SessionScore]) -> bool:
        """Whether the question got a long answer that does not repeat the older sessions found."""
        answer = self._answer_to(row)
        if answer is None:
            return False
        text = searchable_text(answer).text
        if len(content_words(text) - self._words) < _MIN_LONG_ANSWER:
            return False
        new = set(sequences(text))
        minimum = _MIN_NEW_SHARE * len(new)
        older = [score.best.message for score in scores if score.best.time < row.time and score.session != row.session]
        for message in self.reader.messages(older[:_MAX_OLDER]).values():
            for near in self.reader.messages_from(message.session_id, max(0, message.id - _TURN), 2 * _TURN):
                new.difference_update(sequences(searchable_text(near).text))
                if len(new) < minimum:
                    return False
        return True

    def _may_repeat(self, row: Posting) -> bool:
        return row.role == USER and row.length <= self._length

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

    def _find(self, rows: Iterable[Posting]) -> tuple[list[Posting], list[Posting]]:
        """The rows that repeat the query, newest first; and those that repeat an older one of the rows."""
        some = sorted(rows, key=_by_time)[-_MAX_ROWS:]
        self._read_questions([row.message for row in some if row.message not in self._known])
        asking: list[Posting] = []
        copies: list[Posting] = []
        others: dict[frozenset[str], int] = {}
        for row in some:
            if not (asked := self._known[row.message]):
                continue
            if self._repeats(asked):
                asking.append(row)
            elif others.setdefault(asked, row.session) != row.session:
                copies.append(row)
        return asking[::-1], copies[::-1]

    def _read_questions(self, numbers: Sequence[int]) -> None:
        messages = self.reader.messages(numbers) if numbers else {}
        for number in numbers:
            message = messages.get(number)
            text = "" if message is None else searchable_text(message).text
            words, asks = _read_question(text) if len(text) <= _MAX_CACHED else (content_words(text), is_asking(text))
            same = self.query.question and words == self._words and len(words) > _FEW_WORDS
            self._known[number] = words if same or asks else None
        self._read |= messages

    def _repeats(self, words: frozenset[str]) -> bool:
        """Whether a question with these words asks nearly the same as the query."""
        shared = _shared_part(words, self._words)
        if shared < _MIN_SHARED_PAIRS or len(words & self._words) < _MIN_SHARED_WORDS:
            return False
        minimum = _MIN_SHARED_WITH_QUERY if self.query.question else _MIN_SHARED_WITH_KEYWORDS
        return shared >= minimum or any(map(is_unspaced, words))


def _answers(score: SessionScore) -> bool:
    """Whether a session covers most of the query; a title alone may come from the question."""
    return score.best.role != TITLE and score.signals["coverage"] >= _MIN_COVERAGE


def _turns(matches: Matches, questions: Sequence[Posting]) -> frozenset[tuple[int, int]]:
    """The sessions and ordinals of the questions, and of the messages that follow until the user's next message.

    `matches` are those in the sessions of the questions.
    """
    users = {(row.session, row.ordinal) for row, _ in matches.rows if row.role == USER}
    found: set[tuple[int, int]] = set()
    for question in questions:
        for ordinal in range(question.ordinal, question.ordinal + _TURN):
            if ordinal != question.ordinal and (question.session, ordinal) in users:
                break
            found.add((question.session, ordinal))
    return frozenset(found)


def _remove(
    matches: Matches, sessions: Collection[int], turns: Collection[tuple[int, int]]
) -> tuple[Matches, tuple[int, ...]]:
    """The matches outside these turns, and how many are inside, by term."""
    rows = [row for row in matches.rows if row[0][1] not in sessions or (row[0][1], row[0][2]) not in turns]
    kept = Matches(matches.terms, rows)
    counts = kept.count_rows()
    removed = tuple(map(sub, matches.count_rows(), counts))
    terms = [
        replace(term, frequency=max(count, term.frequency - gone))
        for term, count, gone in zip(matches.terms, counts, removed, strict=True)
    ]
    return replace(kept, terms=terms), removed


def _renumber(
    pairs: Sequence[AdjacentTerms], numbers: Sequence[int], turns: Collection[tuple[int, int]]
) -> list[AdjacentTerms]:
    """The pairs outside the turns, for the terms that are left."""
    new = {number: index for index, number in enumerate(numbers)}
    found = []
    for pair in pairs:
        terms = tuple(new[term] for term in pair.terms if term in new)
        rows = [row for row in pair.postings if (row.session, row.ordinal) not in turns]
        if terms and rows:
            found.append(AdjacentTerms(terms, rows))
    return found


def _restore_terms(scores: Iterable[SessionScore], numbers: Sequence[int]) -> list[SessionScore]:
    """The scores with their terms as bits of all terms, not only of the terms that are left."""

    @cache
    def restore(mask: int) -> int:
        return sum(1 << number for index, number in enumerate(numbers) if mask >> index & 1)

    return [
        score._replace(own=restore(score.own), near=restore(score.near), whole=restore(score.whole)) for score in scores
    ]
