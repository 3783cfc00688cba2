"""A search reads what was there when it began, however fast others append."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.feed import Feed, MessageBatch
from memoranda.memory.record.scope import Scope
from memoranda.search.index.postings import Filters, Word
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.index.unindexed_scan import UnindexedScan
from memoranda.storage.position import START, Position

_FIRST = 30
_MAX_READS = 3


class _GrowingFeed(Feed):
    """Has new messages after every read, as if another process appended without a pause."""

    def __init__(self, db: SessionDB) -> None:
        super().__init__(db.engine, Scope.everyone(), None)
        self._db = db
        self.reads = 0

    def messages_after(self, position: Position, limit: int, *, visible: bool = False) -> MessageBatch:
        self.reads += 1
        assert self.reads <= _MAX_READS, "the search follows those who append"
        batch = super().messages_after(position, limit, visible=visible)
        self._db.append_message("s", "user", f"heron again {self.reads}")
        return batch


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[_GrowingFeed]:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"heron {number}"} for number in range(_FIRST)])
        yield _GrowingFeed(db)


def test_messages_without_an_index_are_read_up_to_the_head(feed: _GrowingFeed) -> None:
    """Those that come meanwhile belong to the next search."""
    scan = UnindexedScan(feed, START, feed.head().message, lambda _: None)
    assert scan.view.count("heron") == _FIRST
    scan.close()


def test_a_search_indexes_up_to_the_head(feed: _GrowingFeed, tmp_path: Path) -> None:
    """It catches up with what was there before, and answers."""
    index = SearchIndex(tmp_path / "state.index.db", feed)
    with index.reading() as reader:
        found = reader.postings(Word("heron"), Filters(Scope.everyone()), 100)
    index.close()
    assert len(found) == _FIRST
