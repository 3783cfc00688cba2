"""Contracts of what sessions of one conversation share: their lineage, their project, and their list of tasks."""

import json

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from tests.contracts.store.assertions import chain, contents, expect_refusal, findable, say
from tests.contracts.store.rotation import begin, rotate


def relation(store: SessionStore, session_id: str) -> str | None:
    session = store.sessions.get_session(session_id)
    assert session is not None
    found = session["relation"]
    assert found is None or isinstance(found, str)
    return found


class LineageContract:
    def test_relations_of_children_are_recognised(self, store: SessionStore) -> None:
        """The requested relation counts; without one, a child continues a compressed parent or works for it."""
        store.sessions.create_session("open", "cli")
        store.sessions.create_session("ended", "cli")
        store.sessions.end_session("ended", "compression")
        store.sessions.create_session("left", "cli")
        store.sessions.end_session("left", "user_exit")
        for name, source, parent, requested, expected in (
            ("continuation", "cli", "ended", None, "compression"),
            ("helper", "subagent", "ended", None, "delegation"),
            ("tool", "tool", "open", None, "delegation"),
            ("branch", "cli", "open", "branch", "branch"),
            ("worker", "cli", "open", None, "delegation"),
            ("later", "cli", "left", None, "delegation"),
            ("said", "cli", "open", "delegation", "delegation"),
            ("second", "cli", "ended", "compression", "branch"),
        ):
            store.sessions.create_session(name, source, parent_session_id=parent, relation=requested)
            assert relation(store, name) == expected, name
        assert relation(store, "open") is None

    def test_the_marks_of_hermes_say_what_a_child_is(self, store: SessionStore) -> None:
        """They are in its settings; and a parent that ended by branching has branches."""
        store.sessions.create_session("open", "cli")
        store.sessions.create_session("branched", "cli")
        store.sessions.end_session("branched", "branched")
        for name, parent, marks, expected in (
            ("fork", "open", {"_branched_from": "open"}, "branch"),
            ("work", "branched", {"_delegate_from": "branched"}, "delegation"),
            ("other", "branched", {"temperature": 1}, "branch"),
        ):
            store.sessions.create_session(name, "cli", parent_session_id=parent, model_config=marks)
            assert relation(store, name) == expected, name
        store.sessions.create_session("tool", "tool", parent_session_id="branched")
        assert relation(store, "tool") == "delegation"

    def test_a_compressed_delegation_continues(self, store: SessionStore) -> None:
        """Its continuation is the same delegation, not one that it started."""
        store.sessions.create_session("p", "cli")
        store.sessions.create_session("h", "subagent", parent_session_id="p")
        store.sessions.end_session("h", "compression")
        store.sessions.create_session("h2", "subagent", parent_session_id="h")
        assert relation(store, "h2") == "compression"
        assert store.lineage.get_compression_tip("h") == "h2"

    def test_a_chain_has_one_latest_session_and_one_order(self, store: SessionStore) -> None:
        """Every member leads to the same chain; delegations and branches do not belong to it."""
        chain(store, "a", "b", "c")
        store.sessions.create_session("helper", "subagent", parent_session_id="a", started_at=1.0)
        store.sessions.create_session("branch", "cli", parent_session_id="b", relation="branch", started_at=1.0)
        for member in "abc":
            assert store.lineage.get_compression_lineage(member) == ["a", "b", "c"]
            assert store.lineage.get_compression_tip(member) == "c"
            conversation = store.conversations.conversation_of(member)
            assert conversation is not None
            assert (conversation.conversation_id, sorted(conversation.sessions)) == ("a", ["a", "b", "c"])
        for session_id in ("helper", "branch"):
            assert store.lineage.get_compression_lineage(session_id) == [session_id]
            assert store.lineage.get_compression_tip(session_id) == session_id
        assert store.lineage.get_conversation_root("branch") == "a"
        assert store.lineage.get_compression_tip("missing") is None
        assert store.lineage.get_compression_lineage("missing") == []
        assert store.lineage.get_conversation_root("missing") is None

    def test_ancestors_and_descendants_are_found(self, store: SessionStore) -> None:
        """Links of every kind count."""
        chain(store, "a", "b")
        store.sessions.create_session("c", "cli", parent_session_id="b", relation="branch", title="C")
        assert [row["id"] for row in store.lineage.get_ancestors("c")] == ["c", "b", "a"]
        assert store.lineage.get_ancestors("c")[0] == {"id": "c", "title": "C", "relation": "branch"}
        assert {row["id"] for row in store.lineage.get_descendants("a")} == {"a", "b", "c"}
        assert store.lineage.get_ancestors("missing") == []

    def test_a_conversation_is_read_as_a_whole(self, store: SessionStore) -> None:
        """Its sessions are in the order of the chain, even if a clock went back; copies and summaries are omitted."""
        store.sessions.create_session("z", "cli", started_at=10.0)
        number = store.messages.append_message("z", "user", "first")
        store.sessions.end_session("z", "compression")
        store.sessions.create_session("a", "cli", parent_session_id="z", started_at=5.0)
        store.messages.append_message("a", "user", "summary", is_summary=True)
        store.messages.append_message("a", "user", "first", copy_of=number)
        store.messages.append_message("a", "assistant", "second")
        requested = [row["content"] for row in store.messages.get_messages_as_conversation("a", include_ancestors=True)]
        assert requested == ["first", "second"]
        earlier = [row["content"] for row in store.messages.get_messages_as_conversation("z", include_ancestors=True)]
        assert earlier == ["first"]

    def test_deleting_any_member_leaves_consistent_conversations(self, store: SessionStore) -> None:
        """The sessions before it and after it become separate conversations, each with its own latest session."""
        for gone in range(4):
            names = [f"{gone}{letter}" for letter in "abcd"]
            chain(store, *names)
            assert store.deletion.delete_session(names[gone])
            for part in (names[:gone], names[gone + 1 :]):
                for member in part:
                    assert store.lineage.get_compression_lineage(member) == part
                    assert store.lineage.get_compression_tip(member) == part[-1]
                    session = store.sessions.get_session(member)
                    assert session is not None
                    assert session["conversation_id"] == part[0]
                    assert contents(store, member) == [member]
                if part:
                    assert relation(store, part[0]) is None
            shown = {row["id"] for row in store.listing.list_sessions_rich(limit=100)}
            assert shown & set(names) == {part[-1] for part in (names[:gone], names[gone + 1 :]) if part}
            again = {row["id"] for row in store.listing.list_sessions_rich(limit=100, order_by_last_active=True)}
            assert again == shown

    def test_a_chain_can_continue_after_its_latest_session_was_deleted(self, store: SessionStore) -> None:
        """A new continuation replaces the deleted one."""
        chain(store, "a", "b")
        store.deletion.delete_session("b")
        store.sessions.create_session("c", "cli", parent_session_id="a")
        assert store.lineage.get_compression_lineage("c") == ["a", "c"]

    def test_deleting_a_session_deletes_its_delegated_work(self, store: SessionStore) -> None:
        """All of it is deleted, compressed or not, and nothing else."""
        store.sessions.create_session("p", "cli")
        store.sessions.create_session("h", "subagent", parent_session_id="p")
        store.sessions.create_session("hh", "subagent", parent_session_id="h", relation="delegation")
        store.sessions.end_session("h", "compression")
        store.sessions.create_session("h2", "subagent", parent_session_id="h", relation="compression")
        store.sessions.create_session("branch", "cli", parent_session_id="p", relation="branch")
        store.messages.append_message("h2", "user", "delegated")
        assert store.deletion.delete_session("p")
        assert [row["id"] for row in store.transfer.export_all()] == ["branch"]
        assert relation(store, "branch") is None
        assert findable(store) == []

    def test_a_copy_is_found_when_its_original_is_deleted(self, store: SessionStore) -> None:
        """The continuation then has the only record of the message."""
        store.sessions.create_session("a", "cli")
        number = store.messages.append_message("a", "user", "a fact")
        store.sessions.end_session("a", "compression")
        store.sessions.create_session("b", "cli", parent_session_id="a")
        copy = store.messages.append_message("b", "user", "a fact", copy_of=number)
        assert findable(store) == ["a fact"]
        head = store.feed.head()
        store.deletion.delete_session("a")
        assert findable(store) == ["a fact"]
        session = store.sessions.get_session("b")
        assert session is not None
        assert session["message_count"] == 1
        again = [change for change in store.feed.changes_after(head.change, 10) if change.session_id == "b"]
        assert any(change.from_message is not None and change.from_message <= copy for change in again)

    def test_a_conversation_includes_its_plain_parents(self, store: SessionStore) -> None:
        """A program that only names a parent wants its messages, too; a branch has its own copies."""
        for name, parent in (("a", None), ("b", "a"), ("c", "b")):
            store.sessions.create_session(name, "cli", parent_session_id=parent)
            say(store, name, f"said in {name}")
        found = store.messages.get_messages_as_conversation("c", include_ancestors=True)
        assert [message["content"] for message in found] == ["said in a", "said in b", "said in c"]

    def test_roles_alternate_on_request(self, store: SessionStore) -> None:
        """Neighbours of one role are joined, and results that answer no call are dropped."""
        store.sessions.create_session("s", "cli")
        calls = [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]
        for role, content, fields in (
            ("user", "one", {}),
            ("user", "two", {}),
            ("tool", "lost", {"tool_call_id": "0"}),
            ("assistant", "three", {"tool_calls": calls}),
            ("tool", "four", {"tool_call_id": "1"}),
            ("assistant", "five", {}),
            ("assistant", [{"type": "text", "text": "six"}], {}),
        ):
            store.messages.append_message("s", role, content, **fields)
        found = store.messages.get_messages_as_conversation("s", repair_alternation=True)
        assert [message["role"] for message in found] == ["user", "assistant", "tool", "assistant"]
        assert found[0]["content"] == "one\n\ntwo"
        assert found[3]["content"] == [{"type": "text", "text": "five"}, {"type": "text", "text": "six"}]
        assert len(store.messages.get_messages_as_conversation("s")) == 7


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


_FIRST = [{"id": "wash", "content": "Wash the car.", "status": "pending"}]
_SECOND = [{"id": "wash", "content": "Wash the car.", "status": "completed"}]


def _todos(store: SessionStore, session_id: str) -> object:
    stored = store.todos.conversation_todos(session_id)
    return None if stored is None else json.loads(stored)


def _lists(store: SessionStore, *conversations: str) -> dict[str, list[object]]:
    _, (rows,) = store.conversations.last_messages(conversations, 1, (), store.todos.saved_rows(conversations))
    return store.todos.current_lists(rows)


class TodoContract:
    def test_a_list_belongs_to_the_conversation(self, store: SessionStore) -> None:
        """Any of its sessions reads and writes it, and it is deleted with the conversation."""
        begin(store, "a", "1", "2")
        assert _todos(store, "a") is None
        store.todos.save_conversation_todos("a", json.dumps(_FIRST))
        rotate(store, "a", "b")
        assert _todos(store, "b") == _FIRST
        store.todos.save_conversation_todos("b", json.dumps(_SECOND))
        assert _todos(store, "a") == _SECOND
        store.deletion.delete_sessions(["a", "b"])
        begin(store, "a", "1")
        assert _todos(store, "a") is None

    def test_a_rewind_and_its_restore_change_the_list(self, store: SessionStore) -> None:
        """Also for messages that a continuation repeats; a branch has versions of its own."""
        begin(store, "a", "1")
        store.todos.save_conversation_todos("a", json.dumps(_FIRST))
        say(store, "a", "2")
        store.todos.save_conversation_todos("a", json.dumps(_SECOND))
        _, _, copy = rotate(store, "a", "b")
        store.rotation.branch_session("b", "c")
        store.edits.rewind_to_message("b", copy)
        assert (_todos(store, "b"), _todos(store, "c")) == (_FIRST, _SECOND)
        assert _lists(store, "a", "c", "unknown") == {"a": _FIRST, "c": _SECOND}
        store.edits.restore_rewound("b", copy)
        assert _todos(store, "b") == _SECOND

    def test_an_export_contains_the_list_once(self, store: SessionStore, other: SessionStore) -> None:
        """With the latest session of a conversation; an import without new messages leaves the list as it is."""
        begin(store, "a", "1", "2")
        store.todos.save_conversation_todos("a", json.dumps(_FIRST))
        rotate(store, "a", "b")
        exported = store.transfer.export_all()
        assert [session.get("todos") for session in exported] == [None, _FIRST]
        assert other.transfer.import_sessions(exported).ok
        assert _todos(other, "a") == _todos(other, "b") == _FIRST
        other.todos.save_conversation_todos("b", json.dumps(_SECOND))
        assert other.transfer.import_sessions(exported).ok
        assert _todos(other, "b") == _SECOND

    def test_the_list_of_another_user_is_out_of_reach(self, store: SessionStore) -> None:
        """Neither reads nor writes find the session."""
        begin(store, "a", "1", user_id="ana")
        bob = store.scoped(Scope.of("bob"))
        with expect_refusal("no session"):
            bob.todos.conversation_todos("a")
        with expect_refusal("no session"):
            bob.todos.save_conversation_todos("a", "[]")
        store.todos.save_conversation_todos("a", json.dumps(_FIRST))
        assert (_lists(bob, "a"), _lists(store, "a")) == ({}, {"a": _FIRST})

    def test_what_is_not_a_list_is_refused(self, store: SessionStore) -> None:
        """It could not be read back, so saving it must not look like a success."""
        begin(store, "a", "1")
        store.todos.save_conversation_todos("a", json.dumps(_FIRST))
        for text in ('{"todos": []}', '"later"', "null", "[broken"):
            with expect_refusal("JSON list"):
                store.todos.save_conversation_todos("a", text)
        assert _todos(store, "a") == _FIRST
