"""The index knows the projects of sessions, from the file and from what is not in it yet."""

import pytest

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.search.index.postings import Filters
from memoranda.search.index.search_index import SearchIndex
from tests.search.index.conftest import Find

pytestmark = pytest.mark.slow

ONE, TWO = "github.com/ana/one#aaaaaaaaaaaa", "two#bbbbbbbbbbbb"


def about(*projects: str) -> Filters:
    return Filters(Scope.everyone()).with_values("project", projects)


def fill(sessions: SessionStore) -> dict[str, int]:
    numbers = {}
    for name, project in (("a", ONE), ("b", TWO), ("c", None)):
        sessions.sessions.create_session(name, "cli", project=project, title=f"Lock of {name}")
        numbers[name] = sessions.messages.append_message(name, "user", "a lock")
    return numbers


def test_what_is_found_can_be_limited_to_projects(sessions: SessionStore, index: SearchIndex, find: Find) -> None:
    """Messages and titles, whether they are indexed or searched directly."""
    said = fill(sessions)
    for _ in range(2):
        assert sorted(find("lock", about(ONE))) == [0, said["a"]]
        assert sorted(find("lock", about(ONE, TWO))) == [0, 0, said["a"], said["b"]]
        assert find("lock", about("else")) == find("lock", about()) == []
        assert len(find("lock")) == 6
        index.catch_up()


def test_a_project_that_becomes_known_later_is_followed(sessions: SessionStore, index: SearchIndex, find: Find) -> None:
    """Filled in, changed and taken away, after everything was indexed."""
    said = fill(sessions)
    index.catch_up()
    sessions.sessions.create_session("c", "cli", project=ONE)
    assert sorted(find("lock", about(ONE))) == [0, 0, said["a"], said["c"]]
    sessions.sessions.update_session("c", project=TWO)
    sessions.sessions.update_session("a", project=None)
    assert find("lock", about(ONE)) == []
    assert sorted(find("lock", about(TWO))) == [0, 0, said["b"], said["c"]]
    index.compact()
    assert sorted(find("lock", about(TWO))) == [0, 0, said["b"], said["c"]]


def test_projects_are_seen_while_the_index_cannot_be_used(
    sessions: SessionStore, index: SearchIndex, find: Find
) -> None:
    """Then the record is searched, under the same filter."""
    said = fill(sessions)
    index.catch_up()
    for file in index.files:
        file.write_bytes(b"damaged" * 2_000)
    assert sorted(find("lock", about(ONE))) == [0, said["a"]]
