"""Contracts of conversations: windows in order across their sessions, and lists under every filter, newest first."""

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from tests.contracts.store.assertions import chain, compact, say


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

    def test_the_last_messages_of_several_conversations(self, store: SessionStore) -> None:
        """They are read at once, across the sessions of each; rewound messages and other users' are missing."""
        ids = _conversation(store)
        store.sessions.create_session("s", "cli", user_id="ana")
        said = say(store, "s", "1", "2", "3")
        store.edits.rewind_to_message("s", said[2])
        found, _ = store.conversations.last_messages(["a", "s", "unknown"], 4, ("user", "assistant"))
        shown = {name: [message.id for message in messages] for name, messages in found.items()}
        assert shown == {"a": [ids[3], ids[5], ids[6], ids[8]], "s": said[:2]}
        own = store.scoped(Scope.of("ana")).conversations
        found, (rows,) = own.last_messages(["a", "s"], 1, ("user", "assistant"), ("SELECT 7", ()))
        assert {name: [message.id for message in messages] for name, messages in found.items()} == {"s": [said[1]]}
        assert [*rows[0]] == [7]

    def test_a_session_knows_its_conversation(self, store: SessionStore) -> None:
        """It contains all sessions of the chain; an unknown session has none."""
        chain(store, "a", "b")
        conversation = store.conversations.conversation_of("b")
        assert conversation is not None
        assert (conversation.conversation_id, sorted(conversation.sessions)) == ("a", ["a", "b"])
        assert store.conversations.conversation_of("missing") is None


def list_ids(store: SessionStore, **filters: object) -> list[str]:
    """The ids in a list by start; asserts that a list by last activity has the same conversations."""
    by_start = [row["id"] for row in store.listing.list_sessions_rich(**filters)]  # type: ignore[arg-type]
    by_activity = [row["id"] for row in store.listing.list_sessions_rich(order_by_last_active=True, **filters)]  # type: ignore[arg-type]
    assert sorted(by_start) == sorted(by_activity), "the two orders show different conversations"
    return by_start


class SessionListContract:
    def test_the_newest_come_first(self, store: SessionStore) -> None:
        """The order is by start, or by the last message; lists have pages."""
        for number, (started, said) in enumerate(((1.0, 90.0), (2.0, 10.0), (3.0, 50.0))):
            store.sessions.create_session(f"s{number}", "cli", started_at=started)
            store.messages.append_message(f"s{number}", "user", "x", timestamp=said)
        assert [row["id"] for row in store.listing.list_sessions_rich()] == ["s2", "s1", "s0"]
        by_activity = store.listing.list_sessions_rich(order_by_last_active=True)
        assert [(row["id"], row["last_active"]) for row in by_activity] == [("s0", 90.0), ("s2", 50.0), ("s1", 10.0)]
        pages = [store.listing.list_sessions_rich(limit=1, offset=page)[0]["id"] for page in range(3)]
        assert pages == ["s2", "s1", "s0"]
        assert store.listing.list_sessions_rich(offset=3) == []

    def test_a_list_is_short_by_default(self, store: SessionStore) -> None:
        """It has twenty rows."""
        for number in range(25):
            store.sessions.create_session(f"s{number}", "cli", started_at=float(number))
        assert len(store.listing.list_sessions_rich()) == 20
        assert len(store.listing.list_sessions_rich(limit=100)) == 25

    def test_a_preview_is_the_beginning_of_the_users_first_message(self, store: SessionStore) -> None:
        """It is one line, shortened, whatever form the content has."""
        said = {
            "short": ("  Fix\n the build ", "Fix the build"),
            "long": ("x" * 61, "x" * 60 + "..."),
            "fits": ("x" * 60, "x" * 60),
            "parts": ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "看图"}], "看图"),
            "nul": ("a\x00b", "a\x00b"),
        }
        for name, (content, _) in said.items():
            store.sessions.create_session(name, "cli")
            store.messages.append_message(name, "system", "never shown")
            store.messages.append_message(name, "user", None)
            store.messages.append_message(name, "user", "")
            store.messages.append_message(name, "user", content)
            store.messages.append_message(name, "user", "later")
        store.sessions.create_session("empty", "cli")
        previews = {row["id"]: row["preview"] for row in store.listing.list_sessions_rich()}
        assert previews == {name: shown for name, (_, shown) in said.items()} | {"empty": ""}

    def test_a_compressed_conversation_is_one_row(self, store: SessionStore) -> None:
        """It shows its latest session, with the start of the first one and the counts of all."""
        chain(store, "a", "b", "c")
        store.titles.set_session_title("a", "Plan")
        for order in (False, True):
            (row,) = store.listing.list_sessions_rich(order_by_last_active=order)
            assert (row["id"], row["_lineage_root_id"], row["started_at"]) == ("c", "a", 100.0)
            assert (row["preview"], row["last_active"], row["message_count"]) == ("a", 102.5, 3)
            assert row["title"] == "Plan"
            assert row["ended_at"] is None

    def test_delegated_work_is_omitted(self, store: SessionStore) -> None:
        """It is omitted even after it was compressed; branches are shown."""
        store.sessions.create_session("p", "cli")
        store.sessions.create_session("branch", "cli", parent_session_id="p", relation="branch")
        store.sessions.create_session("h", "subagent", parent_session_id="p")
        store.sessions.end_session("h", "compression")
        store.sessions.create_session("h2", "subagent", parent_session_id="h", relation="compression")
        assert sorted(list_ids(store)) == ["branch", "p"]
        assert sorted(list_ids(store, include_children=True)) == ["branch", "h2", "p"]

    def test_a_list_can_be_limited_by_source(self, store: SessionStore) -> None:
        """It can be limited to one source, to several, or to all but some."""
        for source in ("cli", "telegram", "cron"):
            store.sessions.create_session(source, source)
        assert list_ids(store, source="cli") == ["cli"]
        assert sorted(list_ids(store, source=["cli", "cron"])) == ["cli", "cron"]
        assert sorted(list_ids(store, exclude_sources=("cron", "nothing"))) == ["cli", "telegram"]
        assert list_ids(store, source=[]) == []

    def test_an_archived_conversation_is_omitted(self, store: SessionStore) -> None:
        """The whole conversation is omitted, whichever of its sessions was archived."""
        chain(store, "a", "b", "c")
        store.sessions.create_session("other", "cli")
        for member in "abc":
            assert store.sessions.set_session_archived(member, True)
            assert list_ids(store) == ["other"], member
            assert sorted(list_ids(store, include_archived=True)) == ["c", "other"]
            assert store.sessions.set_session_archived(member, False)
            assert sorted(list_ids(store)) == ["c", "other"], member

    def test_a_time_range_is_about_the_last_activity(self, store: SessionStore) -> None:
        """The last activity of the whole conversation counts."""
        chain(store, "a", "b", "c")
        assert list_ids(store, since=102.5) == ["c"]
        assert list_ids(store, since=102.6) == []
        assert list_ids(store, until=102.5) == ["c"]
        assert list_ids(store, until=102.4) == []

    def test_a_minimum_of_messages_counts_the_whole_conversation(self, store: SessionStore) -> None:
        """A continuation without messages does not hide the conversation."""
        chain(store, "a", "b")
        store.sessions.end_session("b", "compression")
        store.sessions.create_session("c", "cli", parent_session_id="b")
        store.sessions.create_session("empty", "cli")
        assert list_ids(store, min_message_count=2) == ["c"]
        assert list_ids(store, min_message_count=3) == []

    def test_sessions_are_counted(self, store: SessionStore) -> None:
        """All of them count, including members of chains."""
        chain(store, "a", "b")
        say(store, "b", "x")
        assert store.listing.session_count() == 2
        store.sessions.create_session("mail", "mail")
        assert (store.listing.session_count("mail"), store.listing.session_count(source="cli")) == (1, 2)

    def test_a_part_of_an_id_finds_its_conversation(self, store: SessionStore) -> None:
        """The same id comes first, then ids that begin with the text; a conversation is found once, by any session."""
        for number, name in enumerate(("x_20_ab", "20_ab_child", "20_ab", "20Xab")):
            store.sessions.create_session(name, "cli", started_at=float(number))
        found = store.listing.search_sessions_by_id("20_AB")
        assert [row["id"] for row in found] == ["20_ab", "20_ab_child", "x_20_ab"]
        assert [row["id"] for row in store.listing.search_sessions_by_id("20_ab", 1)] == ["20_ab"]
        store.sessions.set_session_archived("20_ab", True)
        found = store.listing.search_sessions_by_id("20_ab", include_archived=False)
        assert [row["id"] for row in found] == ["20_ab_child", "x_20_ab"]
        chain(store, "root_7", "tip_7")
        (found_chain,) = store.listing.search_sessions_by_id("root_7")
        assert (found_chain["id"], found_chain["_lineage_root_id"]) == ("tip_7", "root_7")
        assert [row["id"] for row in store.listing.search_sessions_by_id("_7")] == ["tip_7"]
        assert store.listing.search_sessions_by_id("") == []
