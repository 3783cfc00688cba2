"""Contract of the list of tasks: it belongs to a conversation, and follows its messages."""

import json

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.testing.store_contract.assertions import expect_refusal, say
from memoranda.testing.store_contract.rotation import begin, rotate

_FIRST = [{"id": "wash", "content": "Wash the car.", "status": "pending"}]
_SECOND = [{"id": "wash", "content": "Wash the car.", "status": "completed"}]


def _todos(store: SessionStore, session_id: str) -> object:
    stored = store.todos.conversation_todos(session_id)
    return None if stored is None else json.loads(stored)


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

    def test_what_is_not_a_list_is_refused(self, store: SessionStore) -> None:
        """It could not be read back, so saving it must not look like a success."""
        begin(store, "a", "1")
        store.todos.save_conversation_todos("a", json.dumps(_FIRST))
        for text in ('{"todos": []}', '"later"', "null", "[broken"):
            with expect_refusal("JSON list"):
                store.todos.save_conversation_todos("a", text)
        assert _todos(store, "a") == _FIRST
