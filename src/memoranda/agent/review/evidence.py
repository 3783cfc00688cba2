"""Checks that the user's own words support what a review wants to save.

The check compares words, on purpose: a model that was talked into a write would also be talked into approving it. It
splits a text into sentences and clauses, and checks it clause by clause. The user must have used most content words of
a clause within a few sentences of each other, and all of its names, numbers, paths and identifiers. Words that the user
only denied do not support the same words without the denial. Recalled memory, tool results and the assistant's words
are not the user's, so they support nothing.

The check does not understand the text: a question supports the same words as a statement.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from memoranda.safety.fence import sanitize_context
from memoranda.search.index.tokenizer import index_tokens, is_single_character, is_unspaced, token_spans, tokenize
from memoranda.support.lazy_dataclass import dataclass

_MAX_SENTENCE_CHARS = 600
_MIN_INFLECTED_CHARS = 6

# Function words, and words with which an entry introduces a fact. They are not evidence and need none.
_GRAMMAR = """
a an the and or but if then else of at by for with about into through during to from up down in out on off over under
as than so too very just also only own same such is are was were be been being am have has had having do does did
doing will would can could should may might must shall this that these those it its they them their there here he she
his her him i me my we our us you your who whom whose which what when where why how all any both each more most other
some while because until again once instead rather
"""
_FRAMING = """
user users person people prefer preferred preference like want wish need use used using name named call called say said
tell told ask asked mention mentioned state stated note fact expect live lives work works based located project
currently generally usually typically explicitly time
"""
_HEADINGS = """
skill step steps procedure overview verification verify pitfall pitfalls notes example examples prerequisites check
checks first second third next finally after before run follow do it
"""
_NEGATIONS = """
not no never none neither nor nobody nothing don't doesn't didn't isn't aren't wasn't weren't can't cannot couldn't
won't wouldn't shouldn't haven't hasn't ain't nicht kein keine keinen nie niemals ne pas jamais nunca não
"""


def _tokens(words: str) -> frozenset[str]:
    return frozenset(token for word in words.split() for token in tokenize(word))


_DENYING = _tokens(_NEGATIONS)
EMPTY_WORDS = _tokens(_GRAMMAR) | _tokens(_FRAMING) | _DENYING
EMPTY_WORDS_OF_SKILLS = EMPTY_WORDS | _tokens(_HEADINGS)
_UNSPACED_FRAMING = re.compile("用户|使用者|喜欢|喜歡|偏好|希望|想要|ユーザー?|利用者|好む|好き|사용자|선호|좋아")
_UNSPACED_DENYING = re.compile("[不没沒别別]|ない|ません|않|못")
_NOT_A_DENIAL = re.compile(
    r"\b(?:do not|don['’]?t|never) (?:forget|worry|hesitate|mind)\b|\bno (?:problem|worries|doubt|matter)\b"
    r"|\bnot (?:only|just)\b|\bwhy not\b|\bcan['’]?t wait\b|\bno\. ?(?=\d)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|[\n。！？；]+")
_CLAUSE_END = re.compile(r"(?<=[.!?;:,])\s+|\s+(?:and|but|und|aber|et|mais|y|pero)\s+|[\n。！？；，、]+|\s[-–—]\s")
_CHUNK = re.compile(r"\S+")
_JOINED = re.compile(r"\w[./:@_\\#$%&=+]\w|\d")


@dataclass(frozen=True, slots=True)
class ClauseWord:
    """A content word; a `specific` one must be the user's own, except for its ending."""

    text: str
    tokens: tuple[str, ...]
    specific: bool

    def is_in(self, tokens: frozenset[str]) -> bool:
        return all(token in tokens for token in self.tokens)

    def is_form_of_one_in(self, tokens: frozenset[str]) -> bool:
        """Whether the tokens have this word, or one that differs in its ending if the word is not `specific`."""
        if self.specific or len(self.tokens) != 1:
            return self.is_in(tokens)
        return any(_differ_in_ending(self.tokens[0], token) for token in tokens)


def _differ_in_ending(word: str, other: str) -> bool:
    """Whether two words are equal but for a short ending, as German `trinkt` and `trinke`.

    The index knows the endings of a few languages. Short words with the same beginning are often other words.
    """
    longer = max(len(word), len(other))
    kept = longer - longer // 6
    return longer >= _MIN_INFLECTED_CHARS and word[:kept] == other[:kept]


def share(words: list[ClauseWord], tokens: frozenset[str]) -> float:
    """The share of the words that occur in a set of tokens."""
    return sum(word.is_in(tokens) for word in words) / len(words) if words else 0.0


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text; a very long one is divided."""
    for sentence in _SENTENCE_END.split(text):
        for start in range(0, len(sentence), _MAX_SENTENCE_CHARS):
            if sentence[start : start + _MAX_SENTENCE_CHARS].strip():
                yield sentence[start : start + _MAX_SENTENCE_CHARS]


def clauses(text: str) -> list[str]:
    """The clauses of a text."""
    return [clause.strip() for clause in _CLAUSE_END.split(text) if clause and clause.strip()]


def denies(text: str) -> bool:
    """Whether a text denies something."""
    plain = _NOT_A_DENIAL.sub(" ", text)
    return bool(_UNSPACED_DENYING.search(plain)) or not _DENYING.isdisjoint(tokenize(plain))


def token_set(text: str) -> frozenset[str]:
    """The tokens of a text, formed as in the search index."""
    return frozenset(" ".join(index_tokens(text)).split())


def content_words(clause: str, empty_words: frozenset[str] = EMPTY_WORDS) -> list[ClauseWord]:
    """The words of a clause that are not `empty_words`."""
    clause = _UNSPACED_FRAMING.sub(" ", clause)
    chunks = list(_CHUNK.finditer(clause))
    found = []
    place = 0
    for span in token_spans(clause):
        text = clause[span.start : span.end]
        tokens = _tokens_at(clause, span.start, text)
        if not tokens or all(token in empty_words for token in tokens):
            continue
        while chunks[place].end() <= span.start:
            place += 1
        found.append(ClauseWord(text, tokens, _is_specific(chunks[place][0], text, is_first=place == 0)))
    return found


def _tokens_at(clause: str, start: int, text: str) -> tuple[str, ...]:
    if not is_unspaced(text[:1]):
        return tuple(tokenize(text))
    # The last character of a run belongs to the pair before it.
    ends_a_run = is_single_character(text) and start > 0 and is_unspaced(clause[start - 1])
    return () if ends_a_run else (text,)


def _is_specific(chunk: str, word: str, *, is_first: bool) -> bool:
    """Whether a word is a name, number, path, address or identifier."""
    if _JOINED.search(chunk) or any(char.isupper() for char in word[1:]):
        return True
    return word[:1].isupper() and not is_first


_MIN_SUPPORT = 0.6
_MIN_MENTION = 0.34
_MIN_COVERAGE = 0.8
_MIN_KEPT = 0.5
_WINDOW_SENTENCES = 4
_MAX_SENTENCES = 4_000
_KEPT_END_CHARS = 10_000
_QUOTED = re.compile(r"^\s*>.*$", re.MULTILINE)
_NOTHING_KNOWN: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UnsupportedClause:
    """A clause without support: `missing` are words that the user did not use; or the user said the contrary."""

    clause: str
    missing: tuple[str, ...]
    contrary: bool = False


@dataclass(frozen=True, slots=True)
class _Clause:
    tokens: frozenset[str]
    denies: bool


class UserEvidence:
    """The user's own words in one conversation."""

    def __init__(self, messages: Sequence[str]) -> None:
        all_sentences = [sentence for message in messages for sentence in sentences(own_words(message))]
        recent = all_sentences[-_MAX_SENTENCES:]
        tokens = list(map(token_set, recent))
        # Neighbouring sentences count together, also across messages, because one may answer the other.
        self._windows = [
            frozenset(chain.from_iterable(tokens[start : start + _WINDOW_SENTENCES])) for start in range(len(tokens))
        ]
        self._clauses = [
            _Clause(token_set(clause), denies(clause)) for sentence in recent for clause in clauses(sentence)
        ]

    def find_unsupported(self, text: str, existing: str = "", *, skill: bool = False) -> UnsupportedClause | None:
        """The first clause of a text without support; `existing` is text that is saved already and needs none."""
        known = token_set(existing) if existing else _NOTHING_KNOWN
        has_content = False
        for clause in clauses(text):
            words = content_words(clause, EMPTY_WORDS_OF_SKILLS if skill else EMPTY_WORDS)
            new = [word for word in words if not word.is_in(known)]
            has_content = has_content or bool(words)
            if not new:
                continue
            if not any(_supports(window, words, new, known) for window in self._windows):
                return UnsupportedClause(clause, self._missing_words(new))
            # A label denies nothing by itself: "Shop: use pnpm, not npm" is what was said as "not npm in the shop".
            if not self._agrees(new, denies(text if clause.endswith(":") else clause)):
                return UnsupportedClause(clause, (), contrary=True)
        return None if has_content else UnsupportedClause(text.strip(), ())

    def adds_words(self, text: str, existing: str) -> bool:
        """Whether a text has content words that the existing text lacks."""
        known = token_set(existing)
        return any(not word.is_in(known) for clause in clauses(text) for word in content_words(clause))

    def mentions(self, text: str) -> bool:
        """Whether the user spoke about the subject of a text."""
        words = content_words(text)
        return any(share(words, window) >= _MIN_MENTION for window in self._windows)

    def _agrees(self, words: list[ClauseWord], denied: bool) -> bool:
        """Whether at least one of the user's best matching clauses agrees: it denies exactly if `denied`."""
        shares = [(share(words, clause.tokens), clause.denies) for clause in self._clauses]
        best = max((part for part, _ in shares), default=0.0)
        return any(part == best and denies == denied for part, denies in shares)

    def _missing_words(self, words: list[ClauseWord]) -> tuple[str, ...]:
        """The words that the best matching sentences lack."""
        best = max(self._windows, key=lambda window: share(words, window), default=_NOTHING_KNOWN)
        return tuple(dict.fromkeys(word.text for word in words if not word.is_in(best)))


def own_words(message: str) -> str:
    """A message without recalled memory and quoted lines; only the beginning and end if it is long."""
    own = _QUOTED.sub("", sanitize_context(message))
    # A pasted book is not the user's own words.
    return own if len(own) <= 2 * _KEPT_END_CHARS else f"{own[:_KEPT_END_CHARS]}\n{own[-_KEPT_END_CHARS:]}"


def is_covered(text: str, by: Collection[str]) -> bool:
    """Whether other texts together contain most words of a text, without saying the contrary."""
    known = frozenset(chain.from_iterable(token_set(other) for other in by if denies(other) == denies(text)))
    return share(content_words(text), known) >= _MIN_COVERAGE


def keeps_most(old: str, new: str) -> bool:
    """Whether a new text keeps at least half of the old words, without saying the contrary."""
    words = content_words(old)
    return denies(old) == denies(new) and (not words or share(words, token_set(new)) >= _MIN_KEPT)


def _supports(window: frozenset[str], words: list[ClauseWord], new: list[ClauseWord], known: frozenset[str]) -> bool:
    together = window | known
    if not all(word.is_in(together) for word in words if word.specific):
        return False
    # Words of the existing entry are not evidence for new ones.
    literal = share(new, window)
    if literal == 0.0 or literal >= _MIN_SUPPORT:
        return literal > 0.0
    # Beside words that are the user's own, another form of one counts.
    return sum(word.is_form_of_one_in(window) for word in new) / len(new) >= _MIN_SUPPORT
