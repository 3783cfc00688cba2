"""Reads the messages of candidate sessions whose meaning is compared with a query."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memoranda.memory.record.feed import FeedMessage
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, USER, Filters
from memoranda.search.index.reader import IndexReader
from memoranda.search.legs.leg import Candidate

# Of a very long session, its first messages are read, and those that follow its best message.
_MAX_MESSAGES = 300
_AFTER_BEST = 60
MAX_CHARS = 4_000


class MessageText(NamedTuple):
    """One message of a conversation, with as much of its text as an embedder reads."""

    id: int
    text: str
    by_user: bool


def read_session(reader: IndexReader, candidate: Candidate, filters: Filters) -> list[MessageText]:
    """What the user and the assistant wrote in a session, as far as the filters let the search see it."""
    messages = reader.messages_from(candidate.session_id, 0, _MAX_MESSAGES)
    best = candidate.message_id
    if best is not None and len(messages) == _MAX_MESSAGES and messages[-1].id < best:
        messages += reader.messages_from(candidate.session_id, best, _AFTER_BEST)
    return list(conversation_texts(messages, filters))


def read_best(reader: IndexReader, candidates: list[Candidate], filters: Filters) -> dict[int, MessageText]:
    """The best message of each candidate, by its id."""
    ids = [candidate.message_id for candidate in candidates if candidate.message_id is not None]
    found = reader.messages(ids)
    return {text.id: text for text in conversation_texts(found.values(), filters)}


def conversation_texts(messages: Iterable[FeedMessage], filters: Filters) -> Iterator[MessageText]:
    """The texts of the messages that a search may see; results of tools have no meaning that a question names."""
    for message in messages:
        if _is_visible(message, filters):
            words = searchable_text(message)
            if words.kind in (USER, ASSISTANT) and words.text.strip():
                yield MessageText(message.id, words.text[:MAX_CHARS], words.kind == USER)


def _is_visible(message: FeedMessage, filters: Filters) -> bool:
    return (
        message.id not in filters.without
        and (filters.roles is None or message.role in filters.roles)
        and (filters.since is None or message.timestamp >= filters.since)
        and (filters.until is None or message.timestamp <= filters.until)
    )
