"""Whether a message says a phrase in its order, where the index knows only that all of it is there.

Pairs of characters of unspaced scripts are indexed without their places. For what is looked for word for word, the
candidates are read again.
"""

from collections.abc import Callable, Collection

from memoranda.index.message_text import searchable_text
from memoranda.index.postings import And, Or, Pattern, Phrase, Posting, Without
from memoranda.index.tokenizer import is_single_character, tokenize
from memoranda.sessions.feed import FeedMessage

_AT_ONCE = 200

Texts = Callable[[Collection[int]], dict[int, FeedMessage]]


def keep_in_order(found: list[Posting], pattern: Pattern, texts: Texts) -> list[Posting]:
    """Those that hold every phrase of the pattern as it stands; titles are believed."""
    kept: list[Posting] = []
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE]
        messages = texts([posting.message for posting in some if posting.message])
        for posting in some:
            message = messages.get(posting.message)
            if not posting.message or (message is not None and _holds(pattern, message)):
                kept.append(posting)
    return kept


def _holds(pattern: Pattern, message: FeedMessage) -> bool:
    words = searchable_text(message)
    texts = [tokenize(words.said), tokenize(words.beside)]

    def holds(part: Pattern) -> bool:
        match part:
            case Phrase(tokens, True):
                return any(_stands_in(tokens, text) for text in texts)
            case And(parts):
                return all(map(holds, parts))
            case Or(parts):
                return any(map(holds, parts))
            case Without(keep, _):
                return holds(keep)
            case _:
                # The index is right about everything else.
                return True

    return holds(pattern)


def _stands_in(tokens: tuple[str, ...], text: list[str]) -> bool:
    *before, last = tokens
    for place in range(len(text) - len(before)):
        if text[place : place + len(before)] == before:
            there = text[place + len(before)]
            if there == last or (is_single_character(last) and there.startswith(last)):
                return True
    return False
