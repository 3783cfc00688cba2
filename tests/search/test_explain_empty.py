"""When nothing is found, the answer says whether nothing matches or which filter left it out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search import guidance
from memoranda.search.tool import SessionSearchTool
from tests.search.conftest import Call
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        tell(opened, "june", ["the zebra is here", "I see it"], at=BEGIN)
        tell(opened, "july", ["a telegram about giraffes"], at=BEGIN + 30 * 86_400, source="telegram")
        tell(opened, "helper", ["the heron was delegated"], at=BEGIN, source="subagent")
        yield opened


def test_what_the_filters_leave_out_was_said_nevertheless(call: Call) -> None:
    """No word is called unheard of that occurs without the filters, and the filter to blame is named."""
    for filters, blamed in [
        ({"since": "2025-07-01"}, ["since"]),
        ({"until": "2025-06-01"}, ["until"]),
        ({"role_filter": "assistant"}, ["role_filter"]),
        ({"source": "telegram"}, ["source"]),
        ({"source": "telegram", "role_filter": "assistant"}, ["role_filter", "source"]),
        ({"source": "CLI"}, ["source"]),
        ({"source": "\ud800"}, ["source"]),
        ({"since": "2030-01-01", "until": "2020-01-01"}, ["since", "until"]),
        ({"project": "nope/nope"}, ["project"]),
    ]:
        answer = call(query="zebra", **filters)
        assert (answer["results"], answer["left_out_by"]) == ([], blamed)
        assert "not_found" not in answer
        assert answer["message"] != guidance.NOTHING


def test_words_that_never_occur_are_named_whatever_the_filters(call: Call) -> None:
    """They are named with and without other words that occur."""
    answer = call(query="okapi", role_filter="user")
    assert (answer["not_found"], answer["message"]) == (["okapi"], guidance.NOTHING)
    assert "left_out_by" not in answer
    answer = call(query="zebra okapi giraffes", source="cli")
    assert [result["session_id"] for result in answer["results"]] == ["june"]
    assert answer["not_found"] == ["okapi"]


def test_an_unknown_source_is_reported_with_the_known_ones(call: Call) -> None:
    """Search and browsing both report it."""
    for arguments in ({"query": "zebra"}, {}):
        message = call(**arguments, source="CLI,cli2")["message"]
        assert message == "No conversation comes from 'CLI'. There are: cli, subagent, telegram."


def test_a_time_range_that_ends_before_it_begins_is_reported(call: Call) -> None:
    """Search and browsing both report it."""
    for arguments in ({"query": "zebra"}, {}):
        assert call(**arguments, since="2026-01-01", until="2025-01-01")["message"] == guidance.NO_TIME


def test_an_unknown_role_is_refused_with_the_known_ones(db: SessionDB) -> None:
    """A role is one of four."""
    answer = SessionSearchTool(lambda: db).call({"query": "zebra", "role_filter": "user, robot"})
    assert (answer["success"], answer["reason"]) == (False, "invalid")
    assert answer["error"] == "role_filter must be one of user, assistant, tool, system; 'robot' is none."


def test_hidden_sources_and_the_context_are_named_as_the_cause(db: SessionDB, call: Call) -> None:
    """Both are excluded by default."""
    answer = call(query="heron")
    assert answer["left_out_by"] == ["hidden_sources"]
    assert "subagent" in answer["message"] and "not_found" not in answer
    for query in ("zebra", "zebra okapi"):
        answer = SessionSearchTool(lambda: db, current_session_id="june").call({"query": query})
        assert (answer["results"], answer["left_out_by"]) == ([], ["context"])
        assert "zebra" not in answer.get("not_found", ())


def test_filters_that_only_together_leave_everything_out_are_named_together(db: SessionDB, call: Call) -> None:
    """Dropping one of them would not help."""
    answer = call(query="zebra", since="2025-07-01", source="telegram")
    assert answer["left_out_by"] == ["since", "source"]
    assert "`since` and `source`" in answer["message"]


def test_what_the_query_itself_excludes_is_not_called_unheard_of(call: Call) -> None:
    """It was said, and not wanted."""
    answer = call(query="zebra NOT (zebra OR okapi)")
    assert answer["results"] == []
    assert "not_found" not in answer


def test_what_another_user_said_is_unheard_of(db: SessionDB) -> None:
    """Neither the words nor the sources of others show."""
    tell(db, "anas", ["Ana's okapi"], user_id="ana", source="matrix")
    owner = SessionSearchTool(lambda: db.scoped(Scope.of(None)))
    answer = owner.call({"query": "okapi", "source": "matrix"})
    assert answer["not_found"] == ["okapi"]
    assert "No conversation comes from 'matrix'" in answer["message"]
    assert owner.call({"query": "okapi", "role_filter": "user"})["message"] == guidance.NOTHING


def test_something_found_is_searched_once(db: SessionDB, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is a word that occurs nowhere: only excluded matches need further searches."""
    searched: list[Any] = []
    find = db.find

    def counting(query: str, filters: Any, **options: Any) -> Any:
        searched.append(filters)
        return find(query, filters, **options)

    monkeypatch.setattr(db, "find", counting)
    assert call(query="zebra okapi", role_filter="user")["count"] == 1
    assert call(query="okapi quagga", role_filter="user")["count"] == 0
    assert len(searched) == 2
