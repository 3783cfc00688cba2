"""Contract of projects: a session has the project that it worked on, and lists can be limited to projects."""

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.testing.store_contract.assertions import expect_refusal, say
from memoranda.testing.store_contract.rotation import rotate

ONE, TWO = "github.com/ana/one#aaaaaaaaaaaa", "two#bbbbbbbbbbbb"


def project_in(store: SessionStore, session_id: str) -> object:
    session = store.sessions.get_session(session_id)
    assert session is not None
    return session["project"]


class ProjectContract:
    def test_a_session_has_its_project(self, store: SessionStore) -> None:
        """Exactly as it was passed; a session without one has None."""
        store.sessions.create_session("a", "cli", project=ONE)
        store.sessions.create_session("b", "cli")
        store.sessions.create_session("c", "cli", project="")
        assert [project_in(store, name) for name in "abc"] == [ONE, None, None]

    def test_a_project_that_becomes_known_is_filled_in_and_stays(self, store: SessionStore) -> None:
        """Creating a session again sets a missing project and never changes one; the feed reports it."""
        store.sessions.create_session("a", "cli")
        before = store.feed.head().change
        store.sessions.create_session("a", "cli", project=ONE)
        filled_in = store.feed.head().change
        store.sessions.create_session("a", "cli", project=TWO)
        assert project_in(store, "a") == ONE
        assert before < filled_in == store.feed.head().change

    def test_a_project_can_be_set(self, store: SessionStore) -> None:
        """It can also be removed; the feed reports both."""
        store.sessions.create_session("a", "cli", project=ONE)
        positions = [store.feed.head().change]
        for project in (TWO, None):
            assert store.sessions.update_session("a", project=project)
            assert project_in(store, "a") == project
            positions.append(store.feed.head().change)
        assert positions == sorted(set(positions))
        with expect_refusal("project"):
            store.sessions.update_session("a", project="half \ud800")

    def test_continuations_and_branches_have_the_same_project(self, store: SessionStore) -> None:
        """They inherit it from the session they come from."""
        store.sessions.create_session("a", "cli", project=ONE)
        say(store, "a", "1", "2")
        rotate(store, "a", "b", 1)
        store.rotation.branch_session("b", "c")
        assert [project_in(store, name) for name in "abc"] == [ONE, ONE, ONE]

    def test_a_project_is_exported_and_imported(self, store: SessionStore, other: SessionStore) -> None:
        """The other store has the same project."""
        store.sessions.create_session("a", "cli", project=ONE)
        say(store, "a", "1")
        other.transfer.import_sessions(store.transfer.export_all())
        assert project_in(other, "a") == ONE

    def test_lists_can_be_limited_to_projects(self, store: SessionStore) -> None:
        """A list can be limited to one project, to several, or to none."""
        for name, project in (("a", ONE), ("b", TWO), ("c", None)):
            store.sessions.create_session(name, "cli", project=project, started_at=ord(name))
        for projects, shown in (([ONE], ["a"]), ([ONE, TWO], ["b", "a"]), ([], []), (["else"], []), (None, [*"cba"])):
            for order in (False, True):
                rows = store.listing.list_sessions_rich(projects=projects, order_by_last_active=order)
                assert [row["id"] for row in rows] == shown

    def test_all_projects_are_listed(self, store: SessionStore) -> None:
        """Each is listed once with the number of its sessions, the latest first, and never those of another user."""
        for name, project, user in (("a", ONE, None), ("b", TWO, None), ("c", ONE, None), ("d", "theirs", "ana")):
            store.sessions.create_session(name, "cli", project=project, user_id=user, started_at=ord(name))
        store.sessions.create_session("e", "cli")
        assert list(store.listing.known_projects().items()) == [("theirs", 1), (ONE, 2), (TWO, 1)]
        assert list(store.scoped(Scope.of(None)).listing.known_projects()) == [ONE, TWO]
        assert store.scoped(Scope.of("ben")).listing.known_projects() == {}
