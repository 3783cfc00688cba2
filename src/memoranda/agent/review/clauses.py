"""Splits texts into sentences, clauses and content words, which `agent/review/evidence.py` compares."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memoranda.search.index.tokenizer import index_tokens, is_single_character, is_unspaced, token_spans, tokenize

_MAX_SENTENCE_CHARS = 600

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
    chunks = [(match.start(), match.end(), match.group()) for match in _CHUNK.finditer(clause)]
    found = []
    for span in token_spans(clause):
        text = clause[span.start : span.end]
        tokens = _tokens_at(clause, span.start, text)
        if not tokens or all(token in empty_words for token in tokens):
            continue
        start, chunk = next((start, chunk) for start, end, chunk in chunks if start <= span.start < end)
        found.append(ClauseWord(text, tokens, _is_specific(chunk, text, is_first=start == chunks[0][0])))
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
