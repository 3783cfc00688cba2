"""Contract of taking back the last message, of replacing all messages, and of sessions listed by a prefix."""

import pytest

from memoranda.errors import ItemConflictError, SessionChangedError, SessionError
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.stateful_append import StatefulAppend
from memoranda.memory.record.store import SessionStore
from memoranda.testing.store_contract.assertions import contents, expect_refusal, say
from memoranda.testing.store_contract.rotation import begin, rotate
from memoranda.types import PutItem


def _texts(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


class ReplacementContract:
    def test_the_last_message_is_taken_back(self, store: SessionStore) -> None:
        """Whatever its role; it is returned, is in no view, and can be restored."""
        store.sessions.create_session("s", "cli")
        (first,) = say(store, "s", "question")
        last = store.messages.append_message("s", "tool", {"any": ["json"]}, tool_call_id="c1", external_id="x")
        message = store.edits.pop_message("s")
        assert message is not None
        assert (message["id"], message["content"], message["tool_call_id"]) == (last, {"any": ["json"]}, "c1")
        assert contents(store, "s") == ["question"]
        assert store.messages.get_message(last) is None
        assert store.edits.restore_rewound("s", last) == 1
        assert store.messages.live_message_ids("s") == {first, last}
        assert store.edits.pop_message("s", last) is not None
        assert store.edits.pop_message("s", first) is not None
        assert store.edits.pop_message("s") is None

    def test_only_the_last_message_is_taken_back(self, store: SessionStore) -> None:
        """Any other id is refused, and so are sessions of others and compressed ones."""
        store.sessions.create_session("s", "cli")
        first, _ = say(store, "s", "one", "two")
        with expect_refusal(str(first)):
            store.edits.pop_message("s", first)
        with expect_refusal("no session"):
            store.scoped(Scope.of("bo")).edits.pop_message("s")
        begin(store, "a", "1", "2")
        rotate(store, "a", "b")
        with expect_refusal("continues"):
            store.edits.pop_message("a")
        assert contents(store, "s") == ["one", "two"]

    def test_nothing_is_appended_after_a_message_that_was_not_read(self, store: SessionStore) -> None:
        """The check and the append are one step; a repeated append of the same messages is no change by others."""
        store.sessions.create_session("s", "cli")
        message = {"role": "user", "content": "one", "external_id": "e1"}
        (first,) = store.messages.append_messages("s", [message], last_seen=0)
        assert store.messages.append_messages("s", [message], last_seen=0) == [first]
        (second,) = store.messages.append_messages("s", _texts("two"), last_seen=first)
        for stale in (0, first):
            with pytest.raises(SessionChangedError, match=str(second)):
                store.messages.append_messages("s", _texts("three"), last_seen=stale)
        with expect_refusal("no session"):
            store.messages.append_messages("t", _texts("three"), last_seen=0)
        assert contents(store, "s") == ["one", "two"]
        assert store.maintenance.miscounted_sessions() == []

    def test_an_append_and_the_state_that_it_changes_are_one_step(self, store: SessionStore) -> None:
        """Fields of the session and items of several users: all of it is stored, or nothing."""
        owner, bo = store.scoped(Scope.of(None)), store.scoped(Scope.of("bo"))
        bo.sessions.create_session("s", "cli")
        changes = [(owner.items, [PutItem(("app",), "theme", "dark")]), (bo.items, [PutItem(("app",), "name", "Bo")])]
        append = StatefulAppend(bo.messages).append_with_state
        (first,) = append("s", _texts("one"), last_seen=0, extra_fields={"step": 1}, items=changes)
        refused = [(owner.items, [PutItem(("app",), "theme", "light")])]
        with pytest.raises(SessionChangedError):
            append("s", _texts("two"), last_seen=0, extra_fields={"step": 2}, items=refused)
        with pytest.raises(ItemConflictError):
            conflict = [*refused, (bo.items, [PutItem(("app",), "name", "Bob", version=7)])]
            append("s", _texts("two"), last_seen=first, extra_fields={"step": 2}, items=conflict)
        with pytest.raises(SessionError, match="source"):
            append("s", _texts("two"), extra_fields={"source": "x"})
        found = (owner.items.get(("app",), "theme"), bo.items.get(("app",), "name"), bo.items.get(("app",), "theme"))
        assert [item and item.value for item in found] == ["dark", "Bo", None]
        session = bo.sessions.get_session("s")
        assert session is not None and session["step"] == 1
        assert contents(store, "s") == ["one"] and store.maintenance.miscounted_sessions() == []

    def test_messages_and_fields_are_replaced_in_one_step(self, store: SessionStore) -> None:
        """A replacement that is refused changes no field."""
        store.sessions.create_session("s", "cli")
        (last,) = store.replacement.replace_messages("s", _texts("one"), last_seen=0, extra_fields={"archived_n": 1})
        with pytest.raises(SessionChangedError):
            store.replacement.replace_messages("s", _texts("two"), last_seen=0, extra_fields={"archived_n": 2})
        session = store.sessions.get_session("s")
        assert session is not None and session["archived_n"] == 1 and last

    def test_all_messages_are_replaced(self, store: SessionStore) -> None:
        """At once; the old ones are in no view, and a second call brings back what the first replaced."""
        store.sessions.create_session("s", "cli")
        say(store, "s", "one", "two")
        ids = store.replacement.replace_messages("s", [*_texts("two", "three"), {"role": "tool", "content": "out"}])
        assert contents(store, "s") == ["two", "three", "out"]
        assert sorted(store.messages.live_message_ids("s")) == ids
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == 3
        assert store.replacement.restore_replaced("s") == 2
        assert contents(store, "s") == ["one", "two"]
        assert store.replacement.restore_replaced("s") == 3
        assert contents(store, "s") == ["two", "three", "out"]
        assert store.maintenance.miscounted_sessions() == []
        assert store.replacement.replace_messages("s", []) == []
        assert contents(store, "s") == []
        assert store.replacement.restore_replaced("s") == 3

    def test_a_replacement_can_depend_on_what_was_read(self, store: SessionStore) -> None:
        """A newer message, or an unusable one in the list, means that nothing changes."""
        store.sessions.create_session("s", "cli")
        assert store.replacement.replace_messages("s", _texts("start"), last_seen=0)
        first, second = say(store, "s", "one", "two")
        with expect_refusal("changed"):
            store.replacement.replace_messages("s", _texts("x"), last_seen=first)
        with expect_refusal("role"):
            store.replacement.replace_messages("s", [*_texts("x"), {"content": "no role"}])
        assert contents(store, "s") == ["start", "one", "two"]
        store.replacement.replace_messages("s", _texts("x"), last_seen=second)
        say(store, "s", "later")
        with expect_refusal("changed"):
            store.replacement.restore_replaced("s")
        assert contents(store, "s") == ["x", "later"]
        store.sessions.create_session("t", "cli")
        with expect_refusal("not replaced"):
            store.replacement.restore_replaced("t")

    def test_replaced_messages_hand_over_their_external_ids(self, store: SessionStore) -> None:
        """So that the new list is stored as it is, however much of it the session had before."""
        store.sessions.create_session("s", "cli")
        named = [{"role": "user", "content": text, "external_id": text} for text in ("a", "b")]
        store.messages.append_messages("s", named)
        store.replacement.replace_messages("s", [named[1], named[0]])
        assert contents(store, "s") == ["b", "a"]
        store.messages.append_messages("s", named)
        assert contents(store, "s") == ["b", "a"]

    def test_a_continuation_can_be_replaced(self, store: SessionStore) -> None:
        """The originals of its copies disappear with them and come back; a branch keeps its own copies."""
        begin(store, "a", "1", "2")
        rotate(store, "a", "b")
        before = contents(store, "b")
        store.rotation.branch_session("b", "c")
        store.replacement.replace_messages("b", _texts("new"))
        assert (contents(store, "b"), contents(store, "c")) == (["new"], before)
        store.replacement.restore_replaced("b")
        assert contents(store, "b") == before
        assert store.maintenance.miscounted_sessions() == []

    def test_sessions_are_listed_by_prefix(self, store: SessionStore) -> None:
        """Exactly as written, in the order of their ids, page by page, and only those in scope."""
        for name in ("p/a", "p/b", "p/c", "P/d", "p_x", "q"):
            store.sessions.create_session(name, "cli")
        store.sessions.create_session("p/other", "cli", user_id="bo")
        own = store.scoped(Scope.of(None)).listing
        assert [row["id"] for row in own.list_sessions_with_prefix("p/")] == ["p/a", "p/b", "p/c"]
        assert [row["id"] for row in own.list_sessions_with_prefix("p/", 1, after="p/a")] == ["p/b"]
        assert len(own.list_sessions_with_prefix("")) == 6
        assert store.listing.list_sessions_with_prefix("p/o")[0]["user_id"] == "bo"
