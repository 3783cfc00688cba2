"""Checks the order of words in phrases, for which the index knows only that all tokens occur.

The index has no positions: they would take more room than everything else. For a phrase, `keep_in_order` reads the
messages of the postings and compares them.
"""

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import assert_never

from memoranda.index.message_text import SearchableText, searchable_text, title_text
from memoranda.index.postings import And, IndexedSession, Or, Pattern, Phrase, Posting, Prefix, Without, Word
from memoranda.index.tokenizer import index_tokens, is_single_character, is_unspaced, spellings, tokenize
from memoranda.sessions.feed import FeedMessage

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
        self._lower = [text.lower() for text in self._words] if all(map(str.isascii, self._words)) else None
        self._tokens: list[list[str]] | None = None

    def matches(self, pattern: Pattern) -> bool:
        match pattern:
            case Word(token):
                return self._has(token)
            case Prefix(token):
                return self._has_prefix(token)
            case Phrase(tokens):
                return all(map(self.contains, _sequences(pattern))) and all(map(self._has, tokens))
            case And(parts):
                return all(map(self.matches, parts))
            case Or(parts):
                return any(map(self.matches, parts))
            case Without(keep, drop):
                return self.matches(keep) and not self.matches(drop)
            case _:
                assert_never(pattern)

    def contains(self, tokens: tuple[str, ...]) -> bool:
        """Whether the tokens stand one right after the other."""
        possible = None if self._lower is None else _possible_text(tokens)
        if possible is not None and not any(map(possible.search, self._lower or ())):
            return False
        return any(_contains_sequence(tokens, text) for text in self._read_tokens())

    def _has(self, token: str) -> bool:
        return (
            self._has_prefix(token)
            if is_single_character(token)
            else any(token in text for text in self._read_tokens())
        )

    def _has_prefix(self, prefix: str) -> bool:
        return any(token.startswith(prefix) for text in self._read_tokens() for token in text)

    def _read_tokens(self) -> list[list[str]]:
        if self._tokens is None:
            self._tokens = [tokens for text in self._words for tokens in (tokenize(text), _camel_case(text)) if tokens]
        return self._tokens


@lru_cache(maxsize=64)
def _possible_text(tokens: tuple[str, ...]) -> re.Pattern[str] | None:
    """What ASCII text in lower case must contain if the tokens stand in it one after the other."""
    if not all(map(str.isascii, tokens)):
        return None
    words = ["|".join(re.escape(piece).replace("_", ".") for piece in sorted(spellings(token))) for token in tokens]
    return re.compile("[a-z0-9'+#]*[^a-z0-9]*".join(f"(?:{word})" for word in words))


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
