"""A store, its index, and a way to ask it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.search.index.postings import And, Filters, Pattern, Phrase, Posting, Word
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.index.tokenizer import query_words

EVERYONE = Filters(Scope.everyone())

Find = Callable[..., list[int]]


def pattern(text: str) -> Pattern:
    """All of the typed words."""
    words = query_words(text)
    return And(tuple(Word(word[0]) if len(word) == 1 else Phrase(word) for word in words))


def ids(index: SearchIndex, text: str, filters: Filters = EVERYONE) -> list[int]:
    """The ids of the messages that have all of the typed words, newest first; 0 for a title."""
    return [posting.message for posting in postings(index, text, filters)]


def postings(index: SearchIndex, text: str, filters: Filters = EVERYONE) -> list[Posting]:
    with index.reading() as reader:
        return reader.postings(pattern(text), filters, 10_000)


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[SessionStore]:
    with open_store(tmp_path / "state.db") as opened:
        yield opened


@pytest.fixture
def index(tmp_path: Path, sessions: SessionStore) -> Iterator[SearchIndex]:
    opened = SearchIndex(tmp_path / "index.db", sessions.feed)
    yield opened
    opened.close()


@pytest.fixture
def find(index: SearchIndex) -> Find:
    return lambda text, filters=EVERYONE: ids(index, text, filters)
