"""A search that finds nothing makes the follower check the index, without delaying the answer."""

import threading
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.index.postings import Filters
from memoranda.search.index.search_index import SearchIndex
from tests.timing import GIVE_UP


@pytest.mark.parametrize(("typed", "doubted"), [("nowhere", True), ("weasel", False)])
def test_the_index_is_checked_when_something_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, doubted: bool
) -> None:
    """In the background, and only then."""
    checked = threading.Event()
    monkeypatch.setattr(SearchIndex, "check", lambda index: checked.set())
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "a weasel")
        db.find(typed, Filters(Scope.everyone()), limit=3)
        assert checked.wait(GIVE_UP if doubted else 0.5) == doubted
