"""Contracts of sessions: starting and ending them, their fields, their usage, their titles and their system prompts."""

import time
from contextlib import suppress
from typing import Any

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.memory.record.system_prompts import SharedPrompts
from memoranda.support.text_matcher import TextMatcher
from tests.contracts.store.assertions import chain, expect_refusal, say


class SessionContract:
    def test_a_session_has_what_it_was_created_with(self, store: SessionStore) -> None:
        """Every field is returned, and counters start at zero."""
        created = store.sessions.create_session(
            session_id="s", source="cli", model="some/model", user_id="user_1", parent_session_id=None,
            system_prompt="Be kind.", model_config={"temperature": 0.5, "名": ["é"]}, title="A title", started_at=12.5,
        )  # fmt: skip
        session = store.sessions.get_session("s")
        assert created == "s"
        assert session is not None
        expected = {
            "id": "s", "source": "cli", "model": "some/model", "user_id": "user_1", "parent_session_id": None,
            "system_prompt": "Be kind.", "model_config": {"temperature": 0.5, "名": ["é"]}, "title": "A title",
            "started_at": 12.5, "ended_at": None, "end_reason": None, "message_count": 0, "tool_call_count": 0,
            "input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0,
            "reasoning_tokens": 0, "api_call_count": 0, "archived": 0, "rewind_count": 0, "conversation_id": "s",
        }  # fmt: skip
        assert {name: session[name] for name in expected} == expected

    def test_a_session_starts_now_unless_the_caller_sets_a_start(self, store: SessionStore) -> None:
        """The clock is used only without an explicit start."""
        before = time.time()
        store.sessions.create_session("s", "cli")
        session = store.sessions.get_session("s")
        assert session is not None
        assert before <= session["started_at"] <= time.time()

    def test_an_unknown_session_is_none(self, store: SessionStore) -> None:
        """Reading it is not an error."""
        assert store.sessions.get_session("missing") is None
        assert store.sessions.get_session("") is None
        assert store.messages.get_messages("missing") == []
        assert store.transfer.export_session("missing") is None
        assert store.titles.get_session_title("missing") is None

    def test_creating_again_fills_gaps_and_changes_nothing_else(self, store: SessionStore) -> None:
        """Source, user and start stay; empty fields are filled, and other fields do not change."""
        store.sessions.create_session("s", "cli", user_id="u", started_at=1.0, model="first")
        store.messages.append_message("s", "user", "hello")
        store.sessions.create_session(
            "s", "telegram", started_at=2.0, model="second", system_prompt="late", title="Late"
        )
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["source"], session["user_id"], session["started_at"]) == ("cli", "u", 1.0)
        assert (session["model"], session["system_prompt"], session["title"]) == ("first", "late", "Late")
        assert session["message_count"] == 1
        assert store.listing.session_count() == 1

    def test_unknown_fields_of_a_session_are_kept(self, store: SessionStore) -> None:
        """They are returned with the columns."""
        store.sessions.create_session("s", "cli", cwd="/srv/été", chat={"id": 5})
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["cwd"] == "/srv/été"
        assert session["chat"] == {"id": 5}

    def test_no_field_of_a_new_session_is_lost_silently(self, store: SessionStore) -> None:
        """A field that has a column is stored there, or refused."""
        unusual: dict[str, Any] = {"archived": 1, "input_tokens": 5, "end_reason": "done"}
        for name, value in unusual.items():
            try:
                store.sessions.create_session(f"with {name}", "cli", **{name: value})
            except ValueError:
                continue
            session = store.sessions.get_session(f"with {name}")
            assert session is not None
            assert session[name] == value

    def test_a_session_needs_an_id_and_a_source(self, store: SessionStore) -> None:
        """Neither may be empty."""
        with expect_refusal("id", "source"):
            store.sessions.create_session("", "cli")
        with expect_refusal("id", "source"):
            store.sessions.create_session("s", "")
        assert store.listing.session_count() == 0

    def test_an_unknown_parent_or_relation_is_refused(self, store: SessionStore) -> None:
        """No session is created."""
        with expect_refusal("missing"):
            store.sessions.create_session("s", "cli", parent_session_id="missing")
        store.sessions.create_session("p", "cli")
        with expect_refusal("relation"):
            store.sessions.create_session("s", "cli", parent_session_id="p", relation="cousin")
        assert store.listing.session_count() == 1

    def test_the_first_end_reason_stays(self, store: SessionStore) -> None:
        """Ending twice is harmless; reopening clears both."""
        store.sessions.create_session("s", "cli")
        assert store.sessions.end_session("s", end_reason="user_exit")
        ended = store.sessions.get_session("s")
        assert not store.sessions.end_session("s", end_reason="shutdown")
        assert store.sessions.get_session("s") == ended
        assert ended is not None
        assert ended["end_reason"] == "user_exit"
        assert abs(ended["ended_at"] - time.time()) < 60
        assert store.sessions.reopen_session("s")
        assert not store.sessions.reopen_session("s")
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["ended_at"], session["end_reason"]) == (None, None)

    def test_an_unknown_session_cannot_be_changed(self, store: SessionStore) -> None:
        """Every change is refused, and the error names the session."""
        with expect_refusal("missing"):
            store.sessions.end_session("missing", "x")
        with expect_refusal("missing"):
            store.sessions.reopen_session("missing")
        with expect_refusal("missing"):
            store.sessions.update_session("missing", model="m")
        with expect_refusal("missing"):
            store.usage.update_token_counts("missing", input_tokens=1)
        with expect_refusal("missing"):
            store.messages.append_message("missing", "user", "lost?")
        with expect_refusal("missing"):
            store.messages.append_messages("missing", [])
        with expect_refusal("missing"):
            store.edits.clear_messages("missing")
        with expect_refusal("missing"):
            store.edits.archive_and_compact("missing", [])
        assert not store.deletion.delete_session("missing")
        assert not store.titles.set_session_title("missing", "T")
        assert not store.sessions.set_session_archived("missing", True)
        assert store.listing.session_count() == 0

    def test_fields_that_describe_a_session_can_be_set(self, store: SessionStore) -> None:
        """Fields that define its identity and lineage cannot."""
        store.sessions.create_session("s", "cli")
        assert store.sessions.update_session("s", model="m", system_prompt="p", model_config={"a": 1})
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["model"], session["system_prompt"], session["model_config"]) == ("m", "p", {"a": 1})
        for name in ("id", "user_id", "source", "started_at", "parent_session_id", "nonsense"):
            with expect_refusal(name):
                store.sessions.update_session("s", **{name: "x"})

    def test_no_setting_makes_a_session_unreadable(self, store: SessionStore) -> None:
        """A value of the wrong kind is refused, or kept so that it can be read."""
        store.sessions.create_session("s", "cli")
        for name, value in {"extra": "text", "model_config": "text", "archived": "yes", "model": ["m"]}.items():
            with suppress(ValueError):
                store.sessions.update_session("s", **{name: value})
            assert store.sessions.get_session("s") is not None
            assert store.transfer.export_session("s") is not None
            assert len(store.listing.list_sessions_rich(include_archived=True)) == 1

    def test_tokens_and_costs_add_up(self, store: SessionStore) -> None:
        """Amounts are added, or set if they are absolute; other fields are set if they are passed."""
        store.sessions.create_session("s", "cli")
        store.usage.update_token_counts(
            "s", input_tokens=10, output_tokens=3, estimated_cost_usd=0.25, api_call_count=1
        )
        store.usage.update_token_counts("s", input_tokens=5, reasoning_tokens=2, estimated_cost_usd=0.5, model="m")
        store.usage.update_token_counts("s", model=None, cost_status="estimated")
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["input_tokens"], session["output_tokens"], session["reasoning_tokens"]) == (15, 3, 2)
        assert (session["estimated_cost_usd"], session["actual_cost_usd"]) == (0.75, None)
        assert (session["model"], session["cost_status"], session["api_call_count"]) == ("m", "estimated", 1)
        store.usage.update_token_counts("s", absolute=True, input_tokens=7, estimated_cost_usd=0.1)
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["input_tokens"], session["output_tokens"]) == (7, 3)
        assert session["estimated_cost_usd"] == 0.1

    def test_invalid_usage_is_refused(self, store: SessionStore) -> None:
        """An unknown counter, or an amount that is not a number, changes nothing."""
        store.sessions.create_session("s", "cli")
        before = store.sessions.get_session("s")
        with expect_refusal("message_count"):
            store.usage.update_token_counts("s", input_tokens=1, message_count=5)
        for amount in ("5", True, None, 1.5):
            with expect_refusal("input_tokens"):
                store.usage.update_token_counts("s", output_tokens=1, input_tokens=amount)
        assert store.sessions.get_session("s") == before

    def test_statistics_are_the_sums(self, store: SessionStore) -> None:
        """There are sums by source, by model, and over all sessions."""
        assert store.usage.statistics()["sessions"] == 0
        for name, source, model in (("a", "cli", "m"), ("b", "cli", None), ("c", "cron", "m")):
            store.sessions.create_session(name, source, model=model, started_at=5.0)
            say(store, name, "one", "two")
            store.usage.update_token_counts(name, input_tokens=10, actual_cost_usd=1.5)
        numbers = store.usage.statistics()
        assert (numbers["sessions"], numbers["messages"], numbers["input_tokens"]) == (3, 6, 30)
        assert numbers["actual_cost_usd"] == 4.5
        assert numbers["first"] == 5.0
        assert numbers["by_source"] == {"cli": {"sessions": 2, "messages": 4}, "cron": {"sessions": 1, "messages": 2}}
        assert numbers["by_model"] == {"m": {"sessions": 2, "messages": 4}, "": {"sessions": 1, "messages": 2}}

    def test_a_store_keeps_metadata_about_itself(self, store: SessionStore) -> None:
        """A key has one value, the last one."""
        assert store.usage.get_meta("k") is None
        store.usage.set_meta("k", "ü")
        store.usage.set_meta("k", "v")
        assert store.usage.get_meta("k") == "v"

    def test_a_session_is_found_by_the_beginning_of_its_id(self, store: SessionStore) -> None:
        """Only if it is unique; wildcards of the database are plain characters."""
        for name in ("abc", "abd", "abcd", "x_1", "x%2", "xy3"):
            store.sessions.create_session(name, "cli")
        assert store.sessions.resolve_session_id("abc") == "abc"
        assert store.sessions.resolve_session_id("abd") == "abd"
        assert store.sessions.resolve_session_id("abcd") == "abcd"
        assert store.sessions.resolve_session_id("ab") is None
        assert store.sessions.resolve_session_id("x_") == "x_1"
        assert store.sessions.resolve_session_id("x%") == "x%2"
        assert store.sessions.resolve_session_id("xy") == "xy3"
        assert store.sessions.resolve_session_id("") is None
        assert store.sessions.resolve_session_id("\\") is None

    def test_fields_without_a_column_can_be_set_later(self, store: SessionStore) -> None:
        """Others stay as they are; a column cannot be set this way, and neither can a session that does not exist."""
        store.sessions.create_session("s", "cli", host="laptop")
        store.sessions.set_extra_fields("s", gateway={"chat_id": "5"}, host="server")
        store.sessions.set_extra_fields("s", gateway={"chat_id": "6"})
        row = store.sessions.get_session("s")
        assert row is not None and (row["gateway"], row["host"]) == ({"chat_id": "6"}, "server")
        for name in ("title", "messages", "todos"):
            with expect_refusal(name):
                store.sessions.set_extra_fields("s", **{name: "x"})
        with expect_refusal("no session"):
            store.sessions.set_extra_fields("missing", gateway={})


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


_PROMPT = "You are the assistant of a bakery.\n" * 40


class PromptContract:
    def test_equal_prompts_of_a_user_are_stored_once(self, store: SessionStore) -> None:
        """Each session returns its prompt, and other users never share it."""
        for name, user in (("a", None), ("b", None), ("c", "anna"), ("d", "anna"), ("e", "ben")):
            store.sessions.create_session(name, "cli", user_id=user, system_prompt=_PROMPT)
        store.sessions.create_session("without", "cli")
        assert _prompts(store) == [(None, _PROMPT), ("anna", _PROMPT), ("ben", _PROMPT)]
        assert {_prompt(store, name) for name in "abcde"} == {_PROMPT}
        assert _prompt(store, "without") is None
        assert [row["system_prompt"] for row in store.listing.list_sessions_rich(source="cli")].count(_PROMPT) == 5
        assert "system_prompt_id" not in (store.sessions.get_session("a") or {})
        anna = store.scoped(Scope.of("anna"))
        assert _prompt(anna, "c") == _PROMPT
        assert SharedPrompts(store.engine, store.scope, None).check().damaged == []

    def test_a_prompt_leaves_with_its_last_session(self, store: SessionStore) -> None:
        """Deleting one of two sessions keeps the prompt of the other; replacing a prompt removes the old one."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt=_PROMPT)
        store.deletion.delete_session("a")
        assert _prompt(store, "b") == _PROMPT
        store.sessions.update_session("b", system_prompt="Another one.", model="m")
        assert _prompts(store) == [(None, "Another one.")]
        store.sessions.update_session("b", system_prompt=None)
        assert (_prompts(store), _prompt(store, "b")) == ([], None)
        store.sessions.create_session("b", "cli", system_prompt="filled")
        store.sessions.create_session("b", "cli", system_prompt="ignored")
        assert (_prompts(store), _prompt(store, "b")) == ([(None, "filled")], "filled")
        store.deletion.delete_session("b")
        assert _prompts(store) == []

    def test_a_branch_and_a_continuation_share_the_prompt(self, store: SessionStore) -> None:
        """A branch has the prompt of its session, and a continuation the one that it was built with."""
        store.sessions.create_session("a", "cli", system_prompt=_PROMPT)
        (last,) = say(store, "a", "hello")
        store.rotation.branch_session("a", "branch")
        store.rotation.rotate_session("a", "next", [], last_seen=last, system_prompt="new")
        assert [_prompt(store, name) for name in ("a", "branch", "next")] == [_PROMPT, _PROMPT, "new"]
        assert _prompts(store) == [(None, _PROMPT), (None, "new")]

    def test_a_session_that_gets_a_user_takes_its_prompt_along(self, store: SessionStore) -> None:
        """An import may learn later whose session it is."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt=_PROMPT)
        store.imported_rows.set_columns("a", {"user_id": "anna"}, {})
        assert _prompts(store) == [(None, _PROMPT), ("anna", _PROMPT)]
        assert _prompt(store.scoped(Scope.of("anna")), "a") == _PROMPT

    def test_a_text_is_forgotten_in_shared_prompts(self, store: SessionStore) -> None:
        """Every session that has the prompt is named, and the text is in no row afterwards."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt="The zebra is called Otto.")
        matcher = TextMatcher(["Otto"])
        assert [(each.kind, each.session_id) for each in store.passages.find(matcher)] == [
            ("prompt", "a"),
            ("prompt", "b"),
        ]
        store.passages.replace(matcher)
        assert store.passages.find(matcher) == []
        ((_, text),) = _prompts(store)
        assert "Otto" not in text and _prompt(store, "b") == text

    def test_prompts_are_exported_and_imported(self, store: SessionStore, other: SessionStore) -> None:
        """An export has the text in each session; the other store shares it again."""
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt=_PROMPT)
        exported = store.transfer.export_all()
        assert [session["system_prompt"] for session in exported] == [_PROMPT, _PROMPT]
        assert all("system_prompt_id" not in session for session in exported)
        other.transfer.import_sessions(exported)
        assert (_prompts(other), _prompt(other, "b")) == ([(None, _PROMPT)], _PROMPT)


def _prompt(store: SessionStore, session_id: str) -> str | None:
    row = store.sessions.get_session(session_id)
    assert row is not None
    prompt: str | None = row["system_prompt"]
    return prompt


def _prompts(store: SessionStore) -> list[tuple[str | None, str]]:
    with store.engine.reading() as connection:
        rows = connection.execute("SELECT user_id, text FROM system_prompts").fetchall()
    return sorted([(user, text) for user, text in rows], key=lambda row: (row[0] or "", row[1]))
