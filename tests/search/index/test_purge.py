"""Deleting: the words of deleted messages leave the files of the index, and nothing else does."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record.store import SessionStore
from memoranda.search.index import doc_sets, segments
from memoranda.search.index.search_index import SearchIndex
from tests.search.index.conftest import ids

pytestmark = pytest.mark.slow


def _fill(sessions: SessionStore, index: SearchIndex, count: int, each: int) -> None:
    for number in range(count):
        name = f"s{number}"
        sessions.sessions.create_session(name, "cli", title=f"title{number}x")
        texts = [f"common word{place % 7} only{number}x{place}" for place in range(each)]
        sessions.messages.append_messages(name, [{"role": "user", "content": text} for text in texts])
        index.catch_up()


def _bytes(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def test_deleted_words_are_in_no_file(tmp_path: Path, sessions: SessionStore) -> None:
    """Neither in the index nor in its log; the file stays, and everything else is still found."""
    path = tmp_path / "index.db"
    with closing(SearchIndex(path, sessions.feed)) as index:
        _fill(sessions, index, 40, 5)
        files = index.files
        gone = random.Random(3).sample(range(40), 15)
        assert all(f"only{number}x".encode() in _bytes(path) for number in gone)
        for number in gone:
            sessions.deletion.delete_session(f"s{number}")
        index.catch_up()
        assert index.needs_purge()
        index.purge()
        assert not index.needs_purge()
        assert index.files == files
        for number in range(40):
            deleted = number in gone
            assert (f"only{number}x".encode() not in _bytes(path)) is deleted, number
            assert (f"title{number}x".encode() not in _bytes(path)) is deleted, number
            assert bool(ids(index, f"only{number}x3")) is not deleted
        assert len(ids(index, "common")) == 25 * 5
        index.check()
        assert index.files == files


def test_a_reader_that_stays_leads_to_a_new_file(
    tmp_path: Path, sessions: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it reads, the log cannot be emptied; so the file is rebuilt, and the old one is deleted."""
    monkeypatch.setattr("memoranda.search.index.index_file._EMPTY_LOG_TIMEOUT", 0.05)
    monkeypatch.setattr("memoranda.search.index.index_file._WAIT", 0.05)
    path = tmp_path / "index.db"
    with closing(SearchIndex(path, sessions.feed)) as index, closing(SearchIndex(path, sessions.feed)) as other:
        _fill(sessions, index, 3, 5)
        files = index.files
        with other.reading():
            sessions.deletion.delete_session("s1")
            index.purge()
            assert index.files != files
        assert b"only1x" not in index.files[0].read_bytes()
        assert len(ids(other, "common")) == 10


def test_small_segments_are_merged(sessions: SessionStore, index: SearchIndex) -> None:
    """However many updates there were, there are few segments, and each message is found once."""
    sessions.sessions.create_session("s", "cli")
    made = []
    for number in range(150):
        made.append(sessions.messages.append_message("s", "user", f"common number{number}"))
        index.catch_up()
    connection = index._current()._writer
    assert len(segments.read_segments(connection)) < 22
    assert ids(index, "common") == made[::-1]
    assert [ids(index, f"number{number}") for number in range(150)] == [[message] for message in made]
    index.check()


def test_a_block_ends_a_segment(sessions: SessionStore, index: SearchIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of two blocks are never in one segment, and dense, sparse and rare words are found in all of them."""
    for module in (doc_sets, segments):
        monkeypatch.setattr(module, "BLOCK_BITS", 9)
        monkeypatch.setattr(module, "BLOCK", 512)
        monkeypatch.setattr(module, "_OFFSET", 511)
    monkeypatch.setattr("memoranda.search.index.sequences.BLOCK_BITS", 9)
    sessions.sessions.create_session("s", "cli")
    texts = [f"dense {'half' if n % 2 else 'other'} {'sparse' if n % 50 == 0 else ''} rare{n}" for n in range(1_300)]
    made = sessions.messages.append_messages("s", [{"role": "user", "content": text} for text in texts])
    index.catch_up()
    found = segments.read_segments(index._current()._writer)
    assert [(segment.first, segment.end) for segment in found] == [(0, 512), (512, 1024), (1024, 1300)]
    assert ids(index, "dense") == made[::-1]
    assert ids(index, "half") == made[1::2][::-1]
    assert ids(index, "sparse half") == []
    assert ids(index, "sparse") == made[::50][::-1]
    assert ids(index, "rare777") == [made[777]]
