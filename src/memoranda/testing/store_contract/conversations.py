"""Contract of windows: parts of a conversation in order, across its sessions, and how many messages surround them."""

from memoranda.memory.record.store import SessionStore
from memoranda.testing.store_contract.assertions import chain, compact, say


def _conversation(store: SessionStore) -> list[int]:
    """Create nine messages in a chain of three sessions; return their ids in order."""
    ids = []
    for number, name in enumerate("abc"):
        parent = "abc"[number - 1] if number else None
        store.sessions.create_session(name, "cli", parent_session_id=parent, relation="compression" if parent else None)
        for role, text in (("user", "question"), ("tool", "output"), ("assistant", "answer")):
            ids.append(store.messages.append_message(name, role, f"{text} {number}"))
    return ids


class ConversationContract:
    def test_a_window_reaches_across_sessions(self, store: SessionStore) -> None:
        """It has at most the requested number of messages on either side, and counts those beyond."""
        ids = _conversation(store)
        window = store.conversations.window_around(ids[3], 2)
        assert window is not None
        assert [message.id for message in window.messages] == ids[1:6]
        assert (window.before, window.after) == (1, 3)
        whole = store.conversations.window_around(ids[0], 100)
        assert whole is not None
        assert [message.id for message in whole.messages] == ids
        assert (whole.before, whole.after) == (0, 0)
        single = store.conversations.window_around(ids[8], 0)
        assert single is not None
        assert ([message.id for message in single.messages], single.before, single.after) == ([ids[8]], 8, 0)

    def test_neighbours_can_be_chosen(self, store: SessionStore) -> None:
        """They are chosen by role, or excluded by id; the message itself is always included."""
        ids = _conversation(store)
        window = store.conversations.window_around(ids[4], 1, roles=("user", "assistant"))
        assert window is not None
        assert [message.id for message in window.messages] == [ids[3], ids[4], ids[5]]
        assert (window.before, window.after) == (2, 2)
        window = store.conversations.window_around(ids[4], 1, without=[ids[3], ids[5]])
        assert window is not None
        assert [message.id for message in window.messages] == [ids[2], ids[4], ids[6]]
        assert (window.before, window.after) == (2, 2)

    def test_messages_without_text_are_skipped_as_neighbours(self, store: SessionStore) -> None:
        """A message that only calls a tool has no text to show."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "", "3")
        store.messages.append_message("s", "user", None)
        last = store.messages.append_message("s", "user", [{"type": "text", "text": "5"}])
        window = store.conversations.window_around(ids[0], 9, roles=("user",))
        assert window is not None
        assert [message.id for message in window.messages] == [ids[0], ids[2], last]

    def test_an_invisible_message_has_no_window(self, store: SessionStore) -> None:
        """It is unknown, was rewound, or is a copy or summary that compression wrote."""
        store.sessions.create_session("s", "cli")
        say(store, "s", "1", "2")
        written = compact(store, "s", 1)
        (gone,) = say(store, "s", "gone")
        store.edits.rewind_to_message("s", gone)
        for number in (*written, gone, 10**6, 0, -1):
            assert store.conversations.window_around(number, 3) is None

    def test_a_conversation_is_read_in_pages(self, store: SessionStore) -> None:
        """Each page continues where the previous one ended."""
        ids = _conversation(store)
        conversation = store.conversations.conversation_of("b")
        assert conversation is not None
        seen: list[int] = []
        last = 0
        while page := store.conversations.messages_behind(conversation, last, 4).messages:
            window = store.conversations.messages_behind(conversation, last, 4)
            assert window.before == len(seen)
            seen += [message.id for message in page]
            assert window.after == len(ids) - len(seen)
            last = seen[-1]
        assert seen == ids
        end = store.conversations.messages_behind(conversation, last, 4)
        assert (end.messages, end.before, end.after) == ((), 9, 0)
        without = store.conversations.messages_behind(conversation, 0, 2, without=ids[:2])
        assert [message.id for message in without.messages] == ids[2:4]

    def test_both_ends_of_a_conversation(self, store: SessionStore) -> None:
        """They are the first and the last messages outside a range, without overlap."""
        ids = _conversation(store)
        conversation = store.conversations.conversation_of("a")
        assert conversation is not None
        first, last = store.conversations.ends_of(
            conversation, 2, outside=(ids[3], ids[5]), roles=("user", "assistant")
        )
        assert [message.id for message in first] == [ids[0], ids[2]]
        assert [message.id for message in last] == [ids[6], ids[8]]
        first, last = store.conversations.ends_of(conversation, 9, outside=(ids[0], ids[8]), roles=("user",))
        assert (first, last) == ([], [])

    def test_a_session_knows_its_conversation(self, store: SessionStore) -> None:
        """It contains all sessions of the chain; an unknown session has none."""
        chain(store, "a", "b")
        conversation = store.conversations.conversation_of("b")
        assert conversation is not None
        assert (conversation.conversation_id, sorted(conversation.sessions)) == ("a", ["a", "b"])
        assert store.conversations.conversation_of("missing") is None
