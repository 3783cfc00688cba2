"""Contracts of deleting, pruning, taking back and replacing: exactly what was requested is gone, and all of it."""

import time

import pytest

from memoranda.errors import ItemConflictError, SessionChangedError, SessionError
from memoranda.memory.record.message_edits import StatefulAppend
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.types import PutItem
from tests.contracts.store.assertions import chain, contents, expect_refusal, findable, say
from tests.contracts.store.rotation import begin, rotate

DAY = 86_400.0


def old(store: SessionStore, name: str, days: float, source: str = "cli", parent: str | None = None) -> None:
    """Create an ended session with one message, last active `days` days ago."""
    then = time.time() - days * DAY
    store.sessions.create_session(name, source, started_at=then, parent_session_id=parent)
    store.messages.append_message(name, "user", name, timestamp=then)
    store.sessions.end_session(name, "user_exit")


class DeletionContract:
    def test_a_deleted_session_is_gone(self, store: SessionStore) -> None:
        """Its messages and its title are gone, too; other sessions stay."""
        for name in ("a", "b"):
            store.sessions.create_session(name, "cli", title=name.upper())
            say(store, name, f"said in {name}")
        head = store.feed.head()
        assert store.deletion.delete_session("a")
        assert not store.deletion.delete_session("a")
        assert store.sessions.get_session("a") is None
        assert store.messages.get_messages("a", include_inactive=True) == []
        assert findable(store) == ["said in b"]
        assert store.feed.feed_sessions(["a", "b"]).keys() == {"b"}
        assert "a" in [change.session_id for change in store.feed.changes_after(head.change, 100)]
        assert store.titles.set_session_title("b", "A")

    def test_a_store_knows_the_ids_of_deleted_sessions(self, store: SessionStore) -> None:
        """However they were deleted, including delegated work, until a session with that id exists again."""
        old(store, "old", 100)
        for name in ("a", "b"):
            store.sessions.create_session(name, "cli")
        store.sessions.create_session("h", "subagent", parent_session_id="a")
        names = ["a", "b", "h", "old", "missing"]
        assert store.deletion.deleted_sessions(names) == set()
        store.deletion.delete_session("a")
        store.deletion.prune_sessions()
        assert store.deletion.deleted_sessions(names) == {"a", "h", "old"}
        store.sessions.create_session("a", "cli")
        assert store.deletion.deleted_sessions([*names, *map(str, range(40_000))]) == {"h", "old"}
        store.deletion.delete_sessions(["a"])
        assert store.deletion.deleted_sessions(names) == {"a", "h", "old"}

    def test_several_sessions_are_deleted_in_one_commit(self, store: SessionStore) -> None:
        """Repeated and unknown ids are ignored, and so is one that is deleted with its parent anyway."""
        for name in ("a", "b", "c"):
            store.sessions.create_session(name, "cli")
        store.sessions.create_session("h", "subagent", parent_session_id="a")
        shown = [row["id"] for row in store.deletion.list_deletion(["a", "missing", "b", "a"])]
        assert shown == ["a", "h", "b"]
        assert store.deletion.delete_sessions(["a", "missing", "h", "b", "a"]) == 3
        assert [row["id"] for row in store.transfer.export_all()] == ["c"]

    def test_deleting_an_id_deletes_one_session(self, store: SessionStore) -> None:
        """A string is one id, not a list of ids of one letter."""
        for name in ("ab", "a", "b"):
            store.sessions.create_session(name, "cli")
        assert store.deletion.delete_sessions("ab") == 1
        assert {row["id"] for row in store.transfer.export_all()} == {"a", "b"}

    def test_pruning_deletes_only_old_ended_sessions(self, store: SessionStore) -> None:
        """The list of candidates names the same sessions."""
        old(store, "old", 100)
        old(store, "older", 200, "telegram")
        old(store, "young", 10)
        old(store, "open", 100)
        store.sessions.reopen_session("open")
        old(store, "lively", 100)
        store.messages.append_message("lively", "user", "just now")
        assert [row["id"] for row in store.deletion.list_prune_candidates()] == ["older", "old"]
        assert {"id", "title", "source", "started_at", "message_count"} <= store.deletion.list_prune_candidates()[
            0
        ].keys()
        assert store.deletion.prune_sessions(older_than_days=30, source="telegram") == 1
        assert store.deletion.prune_sessions(older_than_days=90) == 1
        assert {row["id"] for row in store.transfer.export_all()} == {"young", "open", "lively"}
        assert store.deletion.prune_sessions() == 0

    def test_pruning_deletes_delegated_work_too(self, store: SessionStore) -> None:
        """Both are old, so both are listed and deleted, whatever the source of the work, ended or not."""
        old(store, "p", 100, "cron")
        old(store, "h", 100, "subagent", parent="p")
        store.sessions.reopen_session("h")
        assert {row["id"] for row in store.deletion.list_prune_candidates(source="cron")} == {"p", "h"}
        assert store.deletion.prune_sessions(source="cron") == 2
        assert store.listing.session_count() == 0

    def test_pruning_keeps_a_conversation_with_active_delegated_work(self, store: SessionStore) -> None:
        """It keeps all its sessions and its other delegated work."""
        chain(store, "p", "q")
        store.sessions.end_session("q", "user_exit")
        old(store, "h", 100, "subagent", parent="p")
        store.sessions.create_session("k", "subagent", parent_session_id="h")
        say(store, "k", "a second ago")
        assert store.deletion.list_prune_candidates(0.5) == []
        assert store.deletion.prune_sessions(0.5) == 0
        assert store.listing.session_count() == 4

    def test_pruning_keeps_an_active_conversation(self, store: SessionStore) -> None:
        """Its earlier sessions are old, but its latest one is active."""
        old(store, "a", 200)
        store.sessions.reopen_session("a")
        store.sessions.end_session("a", "compression")
        store.sessions.create_session("b", "cli", parent_session_id="a")
        say(store, "b", "today")
        assert store.deletion.prune_sessions() == 0
        store.sessions.end_session("b", "user_exit")
        assert store.deletion.prune_sessions() == 0
        assert store.listing.session_count() == 2

    def test_pruning_checks_again_before_it_deletes(self, store: SessionStore) -> None:
        """A session that was reopened or got a message since the listing is kept, and so is an unlisted one."""
        for name in ("a", "b", "c"):
            old(store, name, 100)
        shown = [row["id"] for row in store.deletion.list_prune_candidates()]
        store.sessions.reopen_session("a")
        store.messages.append_message("b", "user", "today")
        old(store, "d", 100)
        assert store.deletion.prune_sessions(confirmed=shown) == 1
        assert {row["id"] for row in store.transfer.export_all()} == {"a", "b", "d"}

    def test_a_chain_of_old_sessions_is_pruned_whole(self, store: SessionStore) -> None:
        """No session of it remains."""
        chain(store, "a", "b", "c")
        store.sessions.end_session("c", "user_exit")
        assert store.deletion.prune_sessions() == 3
        assert store.listing.session_count() == 0

    def test_pruning_and_archiving_take_only_what_passes_the_filters(self, store: SessionStore) -> None:
        """Texts anywhere and in any case, sizes, costs and dates; every condition must be met."""
        for name, model, tokens in (("small", "acme/Fast-1", 10), ("large", "acme/slow-1", 5_000)):
            old(store, name, 100)
            store.sessions.update_session(name, model=model)
            store.titles.set_session_title(name, f"Plan 50% of {name}")
            store.usage.update_token_counts(name, input_tokens=tokens, estimated_cost_usd=tokens / 1_000)
        for filters, expected in (
            ({"model": "FAST"}, ["small"]),
            ({"title": "50% of l"}, ["large"]),
            ({"title": "50_ of"}, []),
            ({"min_tokens": 11}, ["large"]),
            ({"max_tokens": 10}, ["small"]),
            ({"min_cost": 1.0}, ["large"]),
            ({"min_messages": 2}, []),
            ({"started_before": time.time() - 101 * DAY}, []),
            ({"end_reason": "user_exit", "max_cost": 1.0}, ["small"]),
        ):
            found = [row["id"] for row in store.deletion.list_prune_candidates(90, None, **filters)]
            assert found == expected, filters
        assert store.deletion.archive_sessions(90, min_tokens=11) == 1
        assert store.deletion.archive_sessions(90, min_tokens=11) == 0
        assert [row["id"] for row in store.listing.list_sessions_rich(archived_only=True)] == ["large"]
        assert (store.listing.session_count(), store.listing.session_count(archived=False)) == (2, 1)
        assert store.deletion.prune_sessions(90, archived=False) == 1
        assert store.sessions.get_session("large") is not None
        with expect_refusal("cannot be filtered by 'colour'"):
            store.deletion.prune_sessions(90, colour="red")
        with expect_refusal("min_tokens must be a number"):
            store.deletion.prune_sessions(90, min_tokens="many")

    def test_empty_sessions_are_counted_and_deleted(self, store: SessionStore) -> None:
        """Those that ended, are not archived and have no children."""
        for name in ("open", "ended", "kept", "parent"):
            store.sessions.create_session(name, "cli")
        store.sessions.create_session("child", "cli", parent_session_id="parent", relation="branch")
        for name in ("ended", "kept", "parent"):
            store.sessions.end_session(name, "user_exit")
        store.sessions.set_session_archived("kept", True)
        old(store, "said", 1)
        assert store.deletion.count_empty_sessions() == 1
        assert store.deletion.delete_empty_sessions() == 1
        assert store.sessions.get_session("ended") is None
        assert store.listing.session_count() == 5

    def test_pruning_on_an_interval_happens_once_per_interval(self, store: SessionStore) -> None:
        """The store remembers when it was last pruned; open and archived sessions stay."""
        prune = store.scheduled_prune
        assert prune.last_prune() is None
        before = time.time()
        for name in ("a", "archived", "open"):
            old(store, name, 100)
        store.sessions.set_session_archived("archived", True)
        store.sessions.reopen_session("open")
        assert prune.prune_when_due(90) == 1
        assert before <= (prune.last_prune() or 0) <= time.time()
        old(store, "b", 100)
        assert prune.prune_when_due(90) is None
        assert prune.prune_when_due(90, interval_hours=0) == 1
        assert prune.prune_when_due(90, interval_hours=0, archived=None) == 1
        assert store.listing.session_count() == 1

    def test_pruning_on_an_interval_deletes_a_few_sessions_at_a_time(self, store: SessionStore) -> None:
        """It can be stopped in between, and deletes all of them otherwise; a conversation stays in one piece."""
        for number in range(45):
            old(store, f"s{number}", 100)
        chain(store, "c1", "c2", "c3")
        store.sessions.end_session("c3", "user_exit")
        answers = iter([False, True])
        first = store.scheduled_prune.prune_when_due(90, stopped=lambda: next(answers))
        assert first is not None and 20 <= first < 45
        left = {row["id"] for row in store.deletion.list_prune_candidates(90)}
        assert len(left) == 48 - first and len(left & {"c1", "c2", "c3"}) in (0, 3)
        assert store.scheduled_prune.prune_when_due(90, interval_hours=0) == 48 - first
        assert store.listing.session_count() == 0

    def test_pruning_on_an_interval_ignores_a_damaged_time(self, store: SessionStore) -> None:
        """Another program may have stored something else under the key."""
        old(store, "a", 100)
        store.usage.set_meta("last_auto_prune", "yesterday")
        assert store.scheduled_prune.last_prune() is None
        assert store.scheduled_prune.prune_when_due(90) == 1


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
