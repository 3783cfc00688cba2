"""Contract of sessions: starting and ending them, their fields and their usage."""

import time
from contextlib import suppress
from typing import Any

from memoranda.memory.record.store import SessionStore
from memoranda.testing.store_contract.assertions import expect_refusal, say


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
