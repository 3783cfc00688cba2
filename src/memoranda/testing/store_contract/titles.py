"""Contract of titles: unique per user, numbered within a conversation, on one line."""

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.testing.store_contract.assertions import chain, expect_refusal


class TitleContract:
    def test_a_session_can_be_named_renamed_and_unnamed(self, store: SessionStore) -> None:
        """A blank title removes the title."""
        store.sessions.create_session("s", "cli")
        assert store.titles.get_session_title("s") is None
        assert store.titles.set_session_title("s", "Fix Docker Build")
        assert store.titles.get_session_title("s") == "Fix Docker Build"
        assert store.titles.set_session_title("s", "Fix Docker Build")
        for blank in ("", "  \n", "\u200b", None):
            store.titles.set_session_title("s", "Some title")
            assert store.titles.set_session_title("s", blank)
            assert store.titles.get_session_title("s") is None

    def test_a_title_belongs_to_one_session(self, store: SessionStore) -> None:
        """A second session is refused and keeps its own title; titles are case-sensitive."""
        store.sessions.create_session("a", "cli", title="Plan")
        store.sessions.create_session("b", "cli", title="Other")
        with expect_refusal("Plan", "taken"):
            store.titles.set_session_title("b", " Plan ")
        with expect_refusal("Plan", "taken"):
            store.sessions.create_session("c", "cli", title="Plan")
        assert store.sessions.get_session("c") is None
        assert store.titles.get_session_title("b") == "Other"
        assert store.titles.set_session_title("b", "plan")

    def test_a_title_is_unique_for_its_user_only(self, store: SessionStore) -> None:
        """A collision does not reveal other users, not even to the user without a name."""
        for user in ("ann", "bob", None, ""):
            try:
                store.sessions.create_session(f"of {user!r}", "cli", user_id=user, title="Plan")
            except ValueError as error:
                # A store may refuse an empty name, but not because of another user's title.
                assert user == "" and "of None" not in str(error), error
                continue
            assert store.scoped(Scope.of(user)).titles.resolve_session_by_title("Plan") == f"of {user!r}"

    def test_a_title_is_one_line_that_can_be_seen(self, store: SessionStore) -> None:
        """Control, zero-width and direction characters are removed; emoji are kept whole."""
        store.sessions.create_session("s", "cli")
        for title, stored in {
            "  a \t b\r\nc ": "a b c",
            "a\x00b\x1b[31mc": "ab[31mc",
            "pay\u200bpal\u202e": "paypal",
            "half \ud800 pair": "half pair",
            "家族 👨\u200d👩\u200d👧": "家族 👨\u200d👩\u200d👧",
        }.items():
            store.titles.set_session_title("s", title)
            assert store.titles.get_session_title("s") == stored

    def test_a_title_has_at_most_one_hundred_characters(self, store: SessionStore) -> None:
        """A longer one is refused and changes nothing."""
        store.sessions.create_session("s", "cli", title="before")
        with expect_refusal("100", "101"):
            store.titles.set_session_title("s", "x" * 101)
        with expect_refusal("100"):
            store.sessions.create_session("t", "cli", title="x" * 101)
        assert store.titles.get_session_title("s") == "before"
        assert store.sessions.get_session("t") is None
        assert store.titles.set_session_title("s", "é" * 100)

    def test_the_next_title_is_numbered(self, store: SessionStore) -> None:
        """It follows the highest existing number; a suffix that is not a number does not count."""
        assert store.titles.get_next_title_in_lineage("Fix Docker Build") == "Fix Docker Build"
        assert store.titles.get_next_title_in_lineage("Fresh #7") == "Fresh"
        titles = ("Plan", "plan #2", "Plan #draft", "Plan #07", "Planet #9", "Plan 50%", "Plan_")
        for number, title in enumerate(titles):
            store.sessions.create_session(f"s{number}", "cli", title=title)
        assert store.titles.get_next_title_in_lineage("Plan") == "Plan #2"
        store.sessions.create_session("t2", "cli", title="Plan #2")
        store.sessions.create_session("t5", "cli", title="Plan #5")
        assert store.titles.get_next_title_in_lineage("Plan") == "Plan #6"
        assert store.titles.get_next_title_in_lineage(" Plan #2 ") == "Plan #6"
        assert store.titles.get_next_title_in_lineage("Plan #draft") == "Plan #draft #2"
        assert store.titles.get_next_title_in_lineage("Plan%") == "Plan%"
        assert store.titles.get_next_title_in_lineage("Pla_") == "Pla_"
        with expect_refusal("blank"):
            store.titles.get_next_title_in_lineage(" ")

    def test_a_long_title_can_be_numbered_too(self, store: SessionStore) -> None:
        """It is shortened to make room for every number."""
        base = ("A very long title " * 6)[:98] + "!!"
        titles = []
        for number in range(12):
            title = store.titles.get_next_title_in_lineage(base)
            store.sessions.create_session(f"s{number}", "cli", title=title, started_at=float(number))
            titles.append(title)
        assert len(set(titles)) == 12
        assert all(len(titled) <= 100 for titled in titles)
        assert [titled.rpartition(" #")[2] for titled in titles[1:]] == [str(number) for number in range(2, 13)]
        assert store.titles.resolve_session_by_title(base) == "s11"

    def test_a_title_resolves_to_the_latest_of_its_lineage(self, store: SessionStore) -> None:
        """The highest number counts, for the exact title only, never for a similar one."""
        store.sessions.create_session("one", "cli", title="Plan", started_at=5.0)
        store.sessions.create_session("draft", "cli", title="Plan #draft", started_at=50.0)
        store.sessions.create_session("lower", "cli", title="plan #9", started_at=50.0)
        assert store.titles.resolve_session_by_title("Plan") == "one"
        store.sessions.create_session("ten", "cli", title="Plan #10", started_at=3.0)
        store.sessions.create_session("two", "cli", title="Plan #2", started_at=4.0)
        assert store.titles.resolve_session_by_title("Plan") == "ten"
        assert store.titles.resolve_session_by_title("Plan #2") == "two"
        assert store.titles.resolve_session_by_title("Plan #draft") == "draft"
        assert store.titles.resolve_session_by_title("PLAN") is None
        assert store.titles.resolve_session_by_title("Pla%") is None
        assert store.titles.resolve_session_by_title("") is None

    def test_numbered_titles_are_listed_apart_from_the_exact_one(self, store: SessionStore) -> None:
        """The exact titles of all visible users, and the numbered ones in order of their numbers."""
        for number, title in enumerate(("Plan #10", "Plan", "Plan #2", "plan", "Plan #draft", "Plan #1")):
            store.sessions.create_session(f"s{number}", "cli", title=title)
        store.sessions.create_session("hers", "cli", user_id="ann", title="Plan", started_at=5.0)
        exact, numbered = store.titles.list_titled(" Plan ")
        assert [titled.session_id for titled in exact] == ["hers", "s1"]
        assert [titled.title for titled in numbered] == ["Plan #1", "Plan #2", "Plan #10"]
        exact, numbered = store.scoped(Scope.of("ann")).titles.list_titled("Plan")
        assert [titled.session_id for titled in (*exact, *numbered)] == ["hers"]
        groups = store.titles.list_titled("Plan #2")
        assert [[titled.session_id for titled in group] for group in groups] == [["s2"], []]
        for nothing in ("", "Pla%", "PLAN", "x" * 101, "\ud800"):
            assert store.titles.list_titled(nothing) == ([], [])

    def test_a_continuation_may_use_the_title_of_its_conversation(self, store: SessionStore) -> None:
        """An earlier session of the chain then loses it; a branch may not use it."""
        chain(store, "a", "b", "c")
        store.titles.set_session_title("a", "Plan")
        assert store.titles.set_session_title("c", "Plan")
        assert (store.titles.get_session_title("a"), store.titles.get_session_title("c")) == (None, "Plan")
        store.sessions.create_session("branch", "cli", parent_session_id="c", relation="branch")
        with expect_refusal("taken"):
            store.titles.set_session_title("branch", "Plan")
