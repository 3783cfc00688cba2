"""`session_search` limited to one project."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.tool import SessionSearchTool
from memoranda.support.projects import matching_projects
from tests.contracts.store.rotation import rotate
from tests.examples import examples

pytestmark = pytest.mark.slow

HOUSE, FORK, SHED = "github.com/ana/house#aaaaaaaaaaaa", "github.com/ben/house#aaaaaaaaaaaa", "shed#cccccccccccc"
Call = Callable[..., dict[str, Any]]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        for name, project in (("house", HOUSE), ("fork", FORK), ("shed", SHED), ("none", None)):
            opened.create_session(name, "cli", project=project)
            opened.append_message(name, "user", f"the lock of the {name}")
        yield opened


@pytest.fixture
def call(db: SessionDB) -> Call:
    return lambda **arguments: SessionSearchTool(lambda: db).call(arguments)


def found(answer: dict[str, Any]) -> set[str]:
    assert answer["success"], answer
    return {result["session_id"] for result in answer["results"]}


def test_search_and_lists_are_limited_to_a_project(call: Call) -> None:
    """By any of its names; every result says its project."""
    for arguments in ({"query": "lock", "limit": 10}, {"limit": 10}):
        assert found(call(**arguments, project="ana/house")) == {"house", "fork"}
        assert found(call(**arguments, project="https://x:y@github.com/ben/house.git")) == {"house", "fork"}
        assert found(call(**arguments, project="shed")) == {"shed"}
        assert found(call(**arguments)) == found(call(**arguments, project="")) == {"house", "fork", "shed", "none"}
        projects = {each["session_id"]: each.get("project") for each in call(**arguments)["results"]}
        assert projects == {"house": HOUSE, "fork": FORK, "shed": SHED, "none": None}
    assert call(session_id="house")["session_meta"]["project"] == HOUSE


def test_a_project_without_conversations_finds_nothing_and_says_so(call: Call) -> None:
    """This is not an error, even if the words of the query occur."""
    for arguments in ({"query": "lock"}, {}):
        answer = call(**arguments, project="nobody/knows")
        assert found(answer) == set()
        assert answer["message"] == "No conversation is about that project."


def test_a_project_with_nothing_that_matches_says_that(call: Call) -> None:
    """Which is something else than an unknown project."""
    assert call(query="zebra", project="shed")["message"] == "Nothing in past conversations matches."


def test_this_is_the_project_of_the_conversation_that_is_going_on(db: SessionDB) -> None:
    """Also after compression; else where the caller is; else a refusal that says what to do."""
    tool = SessionSearchTool(lambda: db, current_session_id="fork", current_project=lambda: SHED)
    assert found(tool.call({"query": "lock", "project": "this", "limit": 10})) == {"house"}
    rotate(db, "fork", "later", 1)
    tool = SessionSearchTool(lambda: db, current_session_id="later")
    assert "house" in found(tool.call({"query": "lock", "project": "THIS"}))
    tool = SessionSearchTool(lambda: db, current_session_id="none", current_project=lambda: SHED)
    assert found(tool.call({"query": "lock", "project": "this"})) == {"shed"}
    for unknown in (SessionSearchTool(lambda: db), SessionSearchTool(lambda: db, current_session_id="gone")):
        refused = unknown.call({"query": "lock", "project": "this"})
        assert (refused["success"], refused["reason"]) == (False, "invalid")
        assert "owner/name" in refused["error"]


@pytest.mark.parametrize("project", [5, ["x"], {"a": 1}, True])
def test_a_project_that_is_not_text_is_refused(call: Call, project: object) -> None:
    """Every other argument is checked in the same way."""
    assert call(query="lock", project=project)["reason"] == "invalid"


def test_why_says_which_projects_were_looked_at(call: Call) -> None:
    """Word for word."""
    assert call(query="lock", project="house", why=True)["why"]["filters"]["projects"] == [HOUSE, FORK]


def test_one_user_never_learns_of_the_projects_of_another(db: SessionDB) -> None:
    """Neither by searching nor by listing them."""
    theirs = db.scoped(Scope.of("ana"))
    tool = SessionSearchTool(lambda: theirs)
    assert found(tool.call({"query": "lock", "project": "house"})) == set()
    assert tool.call({"project": "house"})["message"] == "No conversation is about that project."
    assert theirs.known_projects() == {}


def test_messages_can_be_searched_by_project_too(db: SessionDB) -> None:
    """Callers of the store itself name projects exactly."""
    assert {row["session_id"] for row in db.search_messages("lock", projects=[SHED, HOUSE])} == {"shed", "house"}
    assert db.search_messages("lock", projects=[]) == []


@settings(max_examples=examples(25))
@given(st.lists(st.sampled_from([HOUSE, FORK, SHED, "github.com/ana/house", None]), max_size=8), st.booleans())
def test_a_limited_search_finds_what_an_unlimited_one_finds_of_the_project(
    projects: list[str | None], lag: bool
) -> None:
    """Exactly that, whatever is in the record and however far the index has got."""
    with TemporaryDirectory() as home, SessionDB(Path(home) / "state.db") as db:
        for number, project in enumerate(projects):
            db.create_session(str(number), "cli", project=project)
            db.append_message(str(number), "user", "a lock")
            if number == 2 and lag:
                db.index.catch_up()
        tool = SessionSearchTool(lambda: db)
        everything = tool.call({"query": "lock", "limit": 10})["results"]
        for wanted in (HOUSE, "ben/house", "shed"):
            meant = matching_projects(filter(None, projects), wanted)
            expected = {result["session_id"] for result in everything if result.get("project") in meant}
            assert found(tool.call({"query": "lock", "limit": 10, "project": wanted})) == expected
