"""What a view of the index keeps for the next search: never more than a limit, and never what has changed."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.search.index import doc_sets, view
from memoranda.search.index.postings import Filters, Word
from memoranda.search.index.search_index import SearchIndex
from tests.search.index.conftest import ids

pytestmark = pytest.mark.slow


def _add(sessions: SessionStore, name: str, *texts: str) -> None:
    sessions.sessions.create_session(name, "cli")
    sessions.messages.append_messages(name, [{"role": "user", "content": text} for text in texts])


def _frequency(index: SearchIndex, token: str) -> int:
    with index.reading() as reader:
        return reader.frequency(Word(token))


def test_what_another_program_indexes_deletes_and_purges_is_noticed(tmp_path: Path, sessions: SessionStore) -> None:
    """A purge rewrites sets in place; the list of segments stays the same."""
    path = tmp_path / "index.db"
    with closing(SearchIndex(path, sessions.feed)) as index, closing(SearchIndex(path, sessions.feed)) as other:
        for number in range(4):
            _add(sessions, f"s{number}", "common apple", "common pear")
        index.catch_up()
        before = ids(index, "common")
        assert len(before) == 8
        assert ids(index, "common") == before

        _add(sessions, "later", "common cherry")
        other.catch_up()
        assert len(ids(index, "common")) == 9
        assert ids(index, "cherry")

        sessions.deletion.delete_session("s1")
        other.catch_up()
        assert len(ids(index, "common")) == 7
        other.purge()
        assert len(ids(index, "common")) == 7
        assert _frequency(index, "common") == 7
        assert _frequency(other, "common") == 7


def test_kept_filters_do_not_mix_users(tmp_path: Path, sessions: SessionStore) -> None:
    """The same view answers both, one after the other, each with the own messages only."""
    for user in ("ann", "bob"):
        sessions.sessions.create_session(user, "cli", user_id=user)
        sessions.messages.append_messages(user, [{"role": "user", "content": f"common {user}note"}])
    with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
        index.catch_up()
        found: dict[str, list[int]] = {"ann": [], "bob": []}
        for user in ("ann", "bob", "ann", "bob"):
            with index.reading() as reader:
                rows = reader.postings(Word("common"), Filters(Scope.of(user)), 10)
                assert len(rows) == 1
                found[user].append(rows[0].message)
        assert found["ann"][0] == found["ann"][1] != found["bob"][0] == found["bob"][1]


def test_what_is_kept_has_a_limit(tmp_path: Path, sessions: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it those that were used last stay; the answers are the same."""
    _add(sessions, "s", *(f"common word{number}" for number in range(30)))
    with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
        index.catch_up()
        for limit, most in ((4_000, 40), (0, 0)):
            monkeypatch.setattr(view, "_MAX_KEPT_BYTES", limit)
            for number in range(60):
                assert len(ids(index, f"word{number % 30}")) == 1
                with index.reading() as reader:
                    assert reader._view is not None
                    kept = reader._view.view._sets
                    assert len(kept) <= most


def test_the_newest_of_a_set_are_its_highest_numbers() -> None:
    """With any limit, also if one byte has several of them, and across blocks."""
    numbers = random.Random(5)
    docs = sorted({numbers.randrange(3 * doc_sets.BLOCK) for _ in range(500)} | set(range(100, 140)), reverse=True)
    found = doc_sets.from_docs(docs)
    for limit in (None, 0, 1, 3, 170, 171, 499, 10_000):
        assert list(doc_sets.newest(found, limit)) == docs[:limit]


def test_a_difference_has_what_only_the_first_set_has() -> None:
    """Block by block, also where the second set has nothing or more."""
    left, right = {1, 5, 70_000, 140_000}, {5, 6, 70_000, 200_000}
    found = doc_sets.difference(doc_sets.from_docs(left), doc_sets.from_docs(right))
    assert found == doc_sets.from_docs(left - right)
