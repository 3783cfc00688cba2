"""Checks the order of the words of a phrase in texts, where the index cannot be sure of it (`sequences`)."""

import re
from collections.abc import Callable, Collection
from functools import lru_cache

from memoranda.memory.record.feed import FeedMessage
from memoranda.search.index.message_text import SearchableText, searchable_text, title_text
from memoranda.search.index.postings import IndexedSession, Phrase, Posting
from memoranda.search.index.tokenizer import (
    index_tokens,
    is_single_character,
    plain_text,
    spellings,
    tokenize,
)

# A text with a longer word contains a blob.
_MAX_WORD = 400

MessagesById = Callable[[Collection[int]], dict[int, FeedMessage]]
SessionsByNumber = Callable[[Collection[int]], dict[int, IndexedSession]]


def read_texts(
    postings: Collection[Posting], messages_by_id: MessagesById, sessions: SessionsByNumber
) -> dict[Posting, SearchableText]:
    """The texts of messages and titles; those of deleted ones are missing."""
    messages = messages_by_id([posting.message for posting in postings if posting.message])
    titles = sessions([posting.session for posting in postings if not posting.message])
    found: dict[Posting, SearchableText] = {}
    for posting in postings:
        if posting.message:
            if (message := messages.get(posting.message)) is not None:
                found[posting] = searchable_text(message)
        elif (session := titles.get(posting.session)) is not None:
            found[posting] = title_text(session.title or "")
    return found


def is_in_order(words: SearchableText, phrase: Phrase) -> bool:
    """Whether a text that has all words of a phrase has them in its order."""
    texts = [plain_text(text) for text in (words.text, words.tool_text) if text]
    return all(any(_contains(tokens, text) for text in texts) for tokens in phrase.sequences)


def _contains(tokens: tuple[str, ...], text: str) -> bool:
    """Whether the tokens stand one right after the other in a text."""
    places, lower = _places(tokens), text.lower()
    if places is not None and len(lower) == len(text) and not _has_blob(text):
        # A long text need not be divided into words, unless letters with accents may be in the phrase.
        if any(_is_at(match, tokens, text) for match in places.finditer(lower)):
            return True
        if text.isascii():
            return False
    return _has_tokens(tokens, text)


def _has_tokens(tokens: tuple[str, ...], text: str) -> bool:
    # Usually the words stand in the text as they are, and its camelCase names need not be divided.
    return any(_contains_sequence(tokens, read(text)) for read in (tokenize, _camel_case))


def _has_blob(text: str) -> bool:
    """Whether there is a word without an end: an expression would look for the next one from each place again."""
    return max(map(len, text.split()), default=0) > _MAX_WORD


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
    return _has_tokens(tokens, text[start : match.end(1)])


def _camel_case(text: str) -> list[str]:
    return index_tokens(text).parts.split()


def _contains_sequence(tokens: tuple[str, ...], text: list[str]) -> bool:
    *before, last = tokens
    for start in range(len(text) - len(before)):
        if text[start : start + len(before)] == before:
            token = text[start + len(before)]
            if token == last or (is_single_character(last) and token.startswith(last)):
                return True
    return False
