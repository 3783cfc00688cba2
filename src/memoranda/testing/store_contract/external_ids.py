"""Contract of external ids: a message that another program named is stored once per session."""

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.testing.store_contract.assertions import contents, expect_refusal


class ExternalIdContract:
    def test_external_ids_are_found_with_their_sessions(self, store: SessionStore) -> None:
        """Only the requested ids, only in the named sessions."""
        for session in ("s", "t"):
            store.sessions.create_session(session, "cli")
            store.messages.append_message(session, "user", "hi", external_id=f"of-{session}")
        unknown = [f"none-{number}" for number in range(1200)]
        assert store.messages.get_external_ids(["s", "t"], ["of-s", *unknown, "of-t"]) == {"of-s": "s", "of-t": "t"}
        assert store.messages.get_external_ids(["s", "gone"], ["of-t"]) == {}
        assert store.messages.get_external_ids([], ["of-s"]) == store.messages.get_external_ids(["s"], []) == {}
        assert store.scoped(Scope.of("bob")).messages.get_external_ids(["s"], ["of-s"]) == {}

    def test_the_same_external_id_adds_nothing(self, store: SessionStore) -> None:
        """The first message stays, its id is returned, and nothing is counted; per session, under any of its names."""
        store.sessions.create_session("s", "cli")
        store.sessions.create_session("t", "cli")
        first = store.messages.append_message("s", "user", "once", external_id="e")
        again = store.messages.append_messages(
            "s",
            [
                {"role": "user", "content": "twice", "external_id": "e"},
                {"role": "user", "content": "new", "platform_message_id": "f"},
                {"role": "user", "content": "thrice", "message_id": "e"},
                {"role": "user", "content": "new again", "external_id": "f"},
            ],
        )
        assert again[0] == again[2] == first
        assert again[1] == again[3]
        assert contents(store, "s") == ["once", "new"]
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == 2
        assert store.messages.append_message("t", "user", "other session", external_id="e") not in again

    def test_external_ids_that_would_become_equal_are_refused(self, store: SessionStore) -> None:
        """Unpaired surrogates would all be stored as the same character."""
        store.sessions.create_session("s", "cli")
        for half in ("a\ud800", "a\ud801"):
            with expect_refusal("external_id"):
                store.messages.append_message("s", "user", half, external_id=half)
        assert contents(store, "s") == []

    def test_an_empty_external_id_is_none(self, store: SessionStore) -> None:
        """Under any of its names: messages without a name stay distinct, recorded or imported."""
        store.sessions.create_session("s", "cli")
        for name in ("external_id", "message_id", "platform_message_id"):
            for word in ("one", "two"):
                store.messages.append_messages("s", [{"role": "user", "content": f"{name} {word}", name: ""}])
        assert len(contents(store, "s")) == 6
        messages = [{"role": "user", "content": word, "external_id": "", "message_id": word} for word in "abc"]
        assert store.transfer.import_sessions([{"id": "t", "source": "cli", "messages": messages}]).messages == 3
        assert store.messages.get_external_ids(["t"], ["a", "b", "c"]) == dict.fromkeys("abc", "t")

    def test_two_names_for_the_external_id_keep_their_values(self, store: SessionStore) -> None:
        """The message is identified by external_id, whatever the order of the fields."""
        store.sessions.create_session("s", "cli")
        number = store.messages.append_message("s", "user", "x", message_id="m", external_id="e")
        assert store.messages.append_message("s", "user", "x", external_id="e") == number
        (message,) = store.messages.get_messages("s")
        assert (message["external_id"], message["message_id"]) == ("e", "m")
