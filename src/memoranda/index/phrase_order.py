"""Checks the order of words in phrases, for which the index knows only that all tokens occur.

The index has no positions: they would take more room than everything else. For a phrase, `keep_in_order` reads the
messages of the postings and compares them.
"""

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import assert_never

from memoranda.index.message_text import SearchableText, searchable_text, title_text
from memoranda.index.postings import And, IndexedSession, Or, Pattern, Phrase, Posting, Prefix, Without, Word
from memoranda.index.tokenizer import index_tokens, is_single_character, is_unspaced, spellings, tokenize
from memoranda.sessions.feed import FeedMessage

_LOOK_AHEAD = 400
_MAX_PLACES = 8
_IN_WORDS = "abcdefghijklmnopqrstuvwxyz0123456789'+#"
_BETWEEN_WORDS = "".join(chr(code) for code in range(128) if not chr(code).isalnum())

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
        self._words = [text for text in (words.text, words.tool_text) if text]
        self._is_ascii = all(map(str.isascii, self._words))
        self._tokens: list[list[str]] | None = None
        self._parts: list[list[str]] | None = None

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
        pieces = _known_spellings(tokens) if self._is_ascii or quick else None
        if pieces is not None:
            places = [(text, at) for text in self._words for at in islice(_places(text.lower(), pieces), _MAX_PLACES)]
            if not places:
                return False
            if self._is_ascii and not quick and len(places) < _MAX_PLACES:
                # A long text need not be divided into words. (Who asks quickly asks again, and the words are kept.)
                near = [read(_around(*place)) for place in places for read in (tokenize, _camel_case)]
                return any(_contains_sequence(tokens, words) for words in near)
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

    def _read_parts(self) -> list[list[str]]:
        """The parts of camelCase names."""
        if self._parts is None:
            self._parts = [tokens for text in self._words if (tokens := _camel_case(text))]
        return self._parts


@lru_cache(maxsize=256)
def _known_spellings(tokens: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    """How the words of each token may begin in ASCII text in lower case; None if that is not known for all."""
    if not all(map(str.isascii, tokens)):
        return None
    found = tuple(tuple(sorted(spellings(token))) for token in tokens)
    return None if any("_" in piece for pieces in found for piece in pieces) else found


def _places(text: str, words: tuple[tuple[str, ...], ...]) -> Iterator[int]:
    """Where words with these beginnings may stand one after the other in a text: nowhere else can they."""
    first, *others = words
    for piece in first:
        at = text.find(piece)
        while at >= 0:
            if _may_continue(text[at + len(piece) : at + _LOOK_AHEAD], others):
                yield at
            at = text.find(piece, at + 1)


def _around(text: str, at: int) -> str:
    """The whole words around a place in a text."""
    start = max(text.rfind(blank, max(0, at - _LOOK_AHEAD), at) for blank in " \n") + 1
    end = text.find(" ", at + _LOOK_AHEAD)
    return text[start:] if end < 0 else text[start:end]


def _may_continue(rest: str, words: list[tuple[str, ...]]) -> bool:
    for pieces in words:
        after = rest.lstrip(_IN_WORDS)
        same_word = rest[: len(rest) - len(after)]
        if any(piece in same_word for piece in pieces):
            return True
        rest = after.lstrip(_BETWEEN_WORDS)
        if not rest.startswith(pieces):
            return not rest
    return True


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
