"""Checks the order of phrases in unspaced scripts, for which the index knows only that all tokens occur.

Pairs of characters of unspaced scripts are indexed without positions. For a quoted phrase, `keep_in_order` reads the
messages of the postings and compares them.
"""

from collections.abc import Callable, Collection

from memoranda.index.message_text import searchable_text
from memoranda.index.postings import And, Or, Pattern, Phrase, Posting, Without
from memoranda.index.tokenizer import is_single_character, tokenize
from memoranda.sessions.feed import FeedMessage

_BATCH_SIZE = 200

MessagesById = Callable[[Collection[int]], dict[int, FeedMessage]]


def keep_in_order(postings: list[Posting], pattern: Pattern, messages_by_id: MessagesById) -> list[Posting]:
    """Keep the postings of messages that contain every phrase of the pattern in order; titles are not checked."""
    kept: list[Posting] = []
    for start in range(0, len(postings), _BATCH_SIZE):
        batch = postings[start : start + _BATCH_SIZE]
        messages = messages_by_id([posting.message for posting in batch if posting.message])
        for posting in batch:
            message = messages.get(posting.message)
            if not posting.message or (message is not None and _matches_in_order(pattern, message)):
                kept.append(posting)
    return kept


def _matches_in_order(pattern: Pattern, message: FeedMessage) -> bool:
    words = searchable_text(message)
    texts = [tokenize(words.text), tokenize(words.tool_text)]

    def matches(part: Pattern) -> bool:
        match part:
            case Phrase(tokens, True):
                return any(_contains_sequence(tokens, text) for text in texts)
            case And(parts):
                return all(map(matches, parts))
            case Or(parts):
                return any(map(matches, parts))
            case Without(keep, _):
                return matches(keep)
            case _:
                # The index is right about everything else.
                return True

    return matches(pattern)


def _contains_sequence(tokens: tuple[str, ...], text: list[str]) -> bool:
    *before, last = tokens
    for start in range(len(text) - len(before)):
        if text[start : start + len(before)] == before:
            token = text[start + len(before)]
            if token == last or (is_single_character(last) and token.startswith(last)):
                return True
    return False
