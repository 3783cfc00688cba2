"""Checks the order of words in phrases, for which the index knows only that all tokens occur.

The index has no positions: they would take more room than everything else. For a phrase, `keep_in_order` reads the
messages of the postings and compares them.
"""

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import chain
from typing import assert_never

from memoranda.memory.record.feed import FeedMessage
from memoranda.search.index.message_text import SearchableText, searchable_text, title_text
from memoranda.search.index.postings import And, IndexedSession, Or, Pattern, Phrase, Posting, Prefix, Without, Word
from memoranda.search.index.tokenizer import (
    fold_text,
    index_tokens,
    is_single_character,
    is_unspaced,
    plain_text,
    spellings,
    tokenize,
)

# A text with a longer word contains a blob.
_MAX_WORD = 400
# The rest of a word, and what separates it from the next one. A longer rest is not read.
_MAX_REST = 60
_GAP = re.compile(rf"([a-z0-9'+#]{{0,{_MAX_REST}}})(?:[^a-z0-9'+#][^a-z0-9]*)?")

MessagesById = Callable[[Collection[int]], dict[int, FeedMessage]]
SessionsByNumber = Callable[[Collection[int]], dict[int, IndexedSession]]


def has_phrase(pattern: Pattern) -> bool:
    """Whether the order of words matters to a pattern."""
    match pattern:
        case Phrase():
            return bool(_sequences(pattern))
        case And(parts) | Or(parts):
            return any(map(has_phrase, parts))
        case Without(keep, drop):
            return has_phrase(keep) or has_phrase(drop)
        case _:
            return False


def keep_in_order(
    postings: list[Posting], pattern: Pattern, messages_by_id: MessagesById, sessions: SessionsByNumber
) -> list[Posting]:
    """Keep the postings of messages and titles that match a pattern with its phrases in order."""
    texts = read_texts(postings, messages_by_id, sessions)
    return [posting for posting in postings if posting in texts and texts[posting].matches(pattern)]


def read_texts(
    postings: Collection[Posting], messages_by_id: MessagesById, sessions: SessionsByNumber
) -> "dict[Posting, PhraseMatcher]":
    """The texts of messages and titles; those of deleted ones are missing."""
    messages = messages_by_id([posting.message for posting in postings if posting.message])
    titles = sessions([posting.session for posting in postings if not posting.message])
    found: dict[Posting, PhraseMatcher] = {}
    for posting in postings:
        if posting.message:
            if (message := messages.get(posting.message)) is not None:
                found[posting] = PhraseMatcher(searchable_text(message))
        elif (session := titles.get(posting.session)) is not None:
            found[posting] = PhraseMatcher(title_text(session.title or ""))
    return found


class PhraseMatcher:
    """Compares the text of a message with patterns. It is split into tokens only if that may be of use."""

    def __init__(self, words: SearchableText) -> None:
        self._words = [plain_text(text) for text in (words.text, words.tool_text) if text]
        self._is_ascii = all(map(str.isascii, self._words))
        self._blobs: bool | None = None
        self._tokens: list[list[str]] | None = None
        self._parts: list[list[str]] | None = None
        self._lower: list[str] | None = None
        self._folded: list[str] | None = None

    def matches(self, pattern: Pattern) -> bool:
        match pattern:
            case Word(token):
                return self._has(token)
            case Prefix(token):
                return self._has_prefix(token)
            case Phrase(tokens):
                sequences = _sequences(pattern)
                in_sequences = frozenset(chain.from_iterable(sequences))
                return all(map(self.contains, sequences)) and all(
                    self._has(token) for token in tokens if token not in in_sequences
                )
            case And(parts):
                return all(map(self.matches, parts))
            case Or(parts):
                return any(map(self.matches, parts))
            case Without(keep, drop):
                return self.matches(keep) and not self.matches(drop)
            case _:
                assert_never(pattern)

    def contains(self, tokens: tuple[str, ...], *, quick: bool = False) -> bool:
        """Whether the tokens stand one right after the other; `quick` may overlook ASCII tokens with accents."""
        if quick and (pair := _beginnings(tokens)) is not None:
            if not any(_may_follow(*pair, text) for text in self._read_lower()):
                return False
            return self._contains_tokens(tokens)
        pattern = None if self._has_blob() else _places(tokens)
        if pattern is not None and self._is_ascii and not quick:
            # A long text need not be divided into words. (Who asks quickly asks again, and the words are kept.)
            return any(_is_at(match, tokens, text) for text in self._words for match in pattern.finditer(text.lower()))
        if pattern is not None and (quick or all(map(str.isalpha, tokens))):
            texts = self._read_lower() if quick else self._read_folded()
            if not any(map(pattern.search, texts)):
                return False
        return self._contains_tokens(tokens)

    def _contains_tokens(self, tokens: tuple[str, ...]) -> bool:
        # Usually the words stand in the text as they are, and its camelCase names need not be divided.
        every = chain.from_iterable(read() for read in (self._read_tokens, self._read_parts))
        return any(_contains_sequence(tokens, text) for text in every)

    def _has(self, token: str) -> bool:
        return (
            self._has_prefix(token)
            if is_single_character(token)
            else any(token in text for text in self._read_tokens() + self._read_parts())
        )

    def _has_prefix(self, prefix: str) -> bool:
        return any(token.startswith(prefix) for text in self._read_tokens() + self._read_parts() for token in text)

    def _read_tokens(self) -> list[list[str]]:
        if self._tokens is None:
            self._tokens = [tokens for text in self._words if (tokens := tokenize(text))]
        return self._tokens

    def _has_blob(self) -> bool:
        """Whether there is a word without an end: an expression would look for the next one from each place again."""
        if self._blobs is None:
            self._blobs = any(max(map(len, text.split()), default=0) > _MAX_WORD for text in self._words)
        return self._blobs

    def _read_lower(self) -> list[str]:
        if self._lower is None:
            self._lower = list(map(str.lower, self._words))
        return self._lower

    def _read_folded(self) -> list[str]:
        if self._folded is None:
            self._folded = list(map(fold_text, self._words))
        return self._folded

    def _read_parts(self) -> list[list[str]]:
        """The parts of camelCase names."""
        if self._parts is None:
            self._parts = [tokens for text in self._words if (tokens := _camel_case(text))]
        return self._parts


@lru_cache(maxsize=256)
def _beginnings(tokens: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """How the words of two ASCII tokens begin; None if there are not two, or any character may be among those."""
    if len(tokens) != 2 or not all(map(str.isascii, tokens)):
        return None
    first, second = (tuple(spellings(token)) for token in tokens)
    return None if any("_" in beginning for beginning in (*first, *second)) else (first, second)


def _may_follow(first: tuple[str, ...], second: tuple[str, ...], text: str) -> bool:
    """Whether a word with one of these beginnings may stand right after one with another, in text in lower case.

    It finds every place that the expression of `_places` finds. Compiling one for each pair would take longer than the
    rest of the comparison.
    """
    for beginning in first:
        at = text.find(beginning)
        while at >= 0:
            rest = at + len(beginning)
            gap = _GAP.match(text, rest)
            if gap is None or len(gap[1]) == _MAX_REST:
                return True
            if any(text.find(other, rest, gap.end() + len(other)) >= 0 for other in second):
                return True
            at = text.find(beginning, at + 1)
    return False


@lru_cache(maxsize=256)
def _places(tokens: tuple[str, ...]) -> re.Pattern[str] | None:
    """Finds where in ASCII text in lower case the words of these tokens may stand one after the other.

    Nowhere else can they. Its group ends with the last of these words. None if they are not all ASCII.
    """
    if not all(map(str.isascii, tokens)):
        return None
    words = [sorted(map(re.escape, spellings(token)), key=len) for token in tokens]
    first, *others = (f"(?:{'|'.join(pieces).replace('_', '.')})" for pieces in words)
    # The next token is in the rest of the same word, as in "v2", or begins the next word.
    following = "".join(f"[a-z0-9'+#]*(?:[^a-z0-9'+#][^a-z0-9]*)?{pieces}" for pieces in others)
    return re.compile(rf"{first}(?=({following}\S*))")


def _is_at(match: re.Match[str], tokens: tuple[str, ...], text: str) -> bool:
    """Whether the tokens stand where they may stand: in the words from the match to the end of its group."""
    start = max(text.rfind(blank, 0, match.start()) for blank in " \n") + 1
    words = text[start : match.end(1)]
    return any(_contains_sequence(tokens, read(words)) for read in (tokenize, _camel_case))


def _camel_case(text: str) -> list[str]:
    return index_tokens(text).parts.split()


def _sequences(phrase: Phrase) -> list[tuple[str, ...]]:
    """The tokens of a phrase that must follow each other; those of unspaced scripts only if it says so."""
    if phrase.in_order:
        return [phrase.tokens]
    pieces: list[tuple[str, ...]] = []
    for token in phrase.tokens:
        if pieces and not is_unspaced(token) and not is_unspaced(pieces[-1][-1]):
            pieces[-1] += (token,)
        else:
            pieces.append((token,))
    return [piece for piece in pieces if len(piece) > 1]


def _contains_sequence(tokens: tuple[str, ...], text: list[str]) -> bool:
    *before, last = tokens
    for start in range(len(text) - len(before)):
        if text[start : start + len(before)] == before:
            token = text[start + len(before)]
            if token == last or (is_single_character(last) and token.startswith(last)):
                return True
    return False
