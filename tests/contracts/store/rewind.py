"""Contract of rewinding, restoring, compacting and redacting: what each view shows afterwards."""

from contextlib import suppress
from typing import Any

from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import START
from tests.contracts.store.assertions import chain, compact, contents, expect_refusal, findable, say


def everything_shown(store: SessionStore, session_id: str, ids: list[int]) -> str:
    """The results of all reads of a session and some messages, as one text."""
    conversation = store.conversations.conversation_of(session_id)
    assert conversation is not None
    views: list[Any] = [
        store.sessions.get_session(session_id),
        store.messages.get_messages(session_id),
        store.messages.get_messages(session_id, include_inactive=True),
        store.messages.get_messages_as_conversation(session_id),
        store.messages.get_messages_as_conversation(session_id, include_ancestors=True),
        [store.messages.get_message(number) for number in ids],
        [store.conversations.window_around(number, 20) for number in ids],
        store.conversations.messages_behind(conversation, 0, 100),
        store.conversations.ends_of(conversation, 100, outside=(10**9, 0), roles=("user", "assistant", "tool")),
        store.listing.list_sessions_rich(),
        store.listing.list_sessions_rich(order_by_last_active=True, include_children=True, include_archived=True),
        store.transfer.export_session(session_id),
        store.transfer.export_all(),
        store.feed.messages_after(START, 1000).messages,
        store.feed.messages_from(session_id, 0),
        store.feed.messages_by_id(ids),
        store.feed.messages_like(["%"], START, 1000),
    ]
    return repr(views)


class RewindContract:
    def test_what_is_known_of_a_context_is_read_on_or_again(self, store: SessionStore) -> None:
        """After an append only new ids are read; after a rewind, also one with as many new messages, all of them."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "one", "two", "three")
        known = store.messages.live_ids("s")
        assert (known.size, known.last, known.ids) == (3, ids[-1], frozenset(ids))
        assert store.messages.live_ids("s", known) == known
        fourth = store.messages.append_message("s", "user", "four")
        known = store.messages.live_ids("s", known)
        assert known == store.messages.live_ids("s") and fourth in known.ids
        store.edits.rewind_to_message("s", ids[2])
        for text in ("five", "six"):
            store.messages.append_message("s", "user", text)
        again = store.messages.live_ids("s", known)
        assert again == store.messages.live_ids("s") and fourth not in again.ids
        assert store.messages.live_ids("nowhere", known).ids == frozenset()

    def test_rewound_messages_are_in_no_view(self, store: SessionStore) -> None:
        """Lists, windows, exports and followers do not see them; counts and last activity ignore them."""
        store.sessions.create_session("s", "cli", started_at=1.0)
        keep = store.messages.append_message("s", "user", "keep", timestamp=2.0)
        gone = [
            store.messages.append_message("s", "user", "gone question", timestamp=3.0),
            store.messages.append_message(
                "s", "assistant", "gone answer", timestamp=4.0, tool_calls=[{"id": "gone call"}]
            ),
            store.messages.append_message("s", "tool", "gone output", timestamp=5.0, tool_name="gone tool"),
        ]
        answer = store.edits.rewind_to_message("s", gone[0])
        assert (answer["rewound_count"], answer["new_head_id"]) == (3, keep)
        assert answer["target_message_id"] == gone[0]
        assert "gone" not in everything_shown(store, "s", [keep, *gone])
        assert store.messages.live_message_ids("s") == {keep}
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["message_count"], session["tool_call_count"], session["rewind_count"]) == (1, 0, 1)
        assert session["last_active"] == 2.0
        assert [change.session_id for change in store.feed.changes_after(START, 100)][-1] == "s"
        assert store.usage.statistics()["messages"] == 1

    def test_only_a_live_user_message_can_be_rewound_to(self, store: SessionStore) -> None:
        """Everything else is refused and changes nothing."""
        store.sessions.create_session("s", "cli")
        store.sessions.create_session("t", "cli")
        (mine,) = say(store, "s", "mine")
        (answer,) = say(store, "s", "answer", role="assistant")
        (elsewhere,) = say(store, "t", "elsewhere")
        for number in (answer, elsewhere, 10**6, 0, -1):
            with expect_refusal(str(number)):
                store.edits.rewind_to_message("s", number)
        assert contents(store, "s") == ["mine", "answer"]
        store.edits.rewind_to_message("s", mine)
        with expect_refusal(str(mine)):
            store.edits.rewind_to_message("s", mine)

    def test_rewound_messages_can_be_restored(self, store: SessionStore) -> None:
        """They can be restored until the conversation has new messages."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "2", "3")
        store.edits.rewind_to_message("s", ids[1])
        assert store.edits.restore_rewound("s", ids[1]) == 2
        assert contents(store, "s") == ["1", "2", "3"]
        assert findable(store) == ["1", "2", "3"]
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == 3
        store.edits.rewind_to_message("s", ids[1])
        say(store, "s", "other")
        with expect_refusal("newer messages"):
            store.edits.restore_rewound("s", ids[1])
        assert contents(store, "s") == ["1", "other"]

    def test_a_rewound_external_id_can_be_used_for_an_edited_message(self, store: SessionStore) -> None:
        """Chat platforms do this with an edited message; the same text restores nothing and adds nothing."""
        store.sessions.create_session("s", "cli")
        first = store.messages.append_message("s", "user", "alpha", external_id="e")
        store.edits.rewind_to_message("s", first)
        assert store.messages.append_message("s", "user", "alpha", external_id="e") == first
        assert contents(store, "s") == []
        edited = store.messages.append_message("s", "user", "beta", external_id="e")
        assert edited != first
        assert store.messages.append_message("s", "user", "gamma", external_id="e") == edited
        assert contents(store, "s") == ["beta"]

    def test_restoring_reverts_only_the_last_rewind(self, store: SessionStore) -> None:
        """Messages that an earlier rewind removed and that were replaced are not restored."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "2", "first try")
        store.edits.rewind_to_message("s", ids[2])
        say(store, "s", "second try")
        store.edits.rewind_to_message("s", ids[1])
        store.edits.restore_rewound("s", ids[1])
        assert contents(store, "s") == ["1", "2", "second try"]

    def test_restoring_never_restores_compressed_messages(self, store: SessionStore) -> None:
        """Old turns do not return next to their summary."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "old 1", "old 2")
        compact(store, "s", 0)
        (new,) = say(store, "s", "new")
        store.edits.rewind_to_message("s", new)
        with suppress(ValueError):
            # May be refused, because the live summary follows it.
            store.edits.restore_rewound("s", ids[0])
        store.edits.restore_rewound("s", new)
        assert contents(store, "s")[1:] == ["new"]
        assert findable(store).count("old 1") == 1

    def test_compressing_changes_the_context_and_not_the_record(self, store: SessionStore) -> None:
        """Every message is still counted, found and exported, once and in order."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "2", "3", "4")
        compact(store, "s", 1)
        live = store.messages.get_messages("s")
        assert [row["content"] for row in live][1:] == ["4"]
        assert live[0]["is_summary"]
        recorded = [row["content"] for row in store.messages.get_messages_as_conversation("s", include_ancestors=True)]
        assert recorded == ["1", "2", "3", "4"]
        assert [text for text in findable(store) if text in ("1", "2", "3", "4")] == ["1", "2", "3", "4"]
        assert store.messages.live_message_ids("s") == {row["id"] for row in live} | {ids[3]}
        window = store.conversations.window_around(ids[1], 5)
        assert window is not None
        assert [message.content for message in window.messages] == ["1", "2", "3", "4"]
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["message_count"], session["own_message_count"], session["rewind_count"]) == (2, 4, 0)

    def test_compressing_repeatedly_duplicates_nothing(self, store: SessionStore) -> None:
        """A copy of a copy still refers to the original message."""
        store.sessions.create_session("s", "cli")
        say(store, "s", "1", "2", "3")
        for text in ("4", "5", "6"):
            compact(store, "s", 2)
            say(store, "s", text)
        assert [text for text in findable(store) if len(str(text)) == 1] == ["1", "2", "3", "4", "5", "6"]
        assert contents(store, "s")[1:] == ["4", "5", "6"]
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["message_count"], session["own_message_count"]) == (4, 6)

    def test_copies_may_have_external_ids(self, store: SessionStore) -> None:
        """The context contains them, and importing them again still adds nothing."""
        store.sessions.create_session("s", "cli")
        for text in ("1", "2", "3"):
            store.messages.append_message("s", "user", text, external_id=f"id {text}")
        compact(store, "s", 2)
        assert contents(store, "s")[1:] == ["2", "3"]
        store.messages.append_message("s", "user", "3 again", external_id="id 3")
        assert contents(store, "s")[1:] == ["2", "3"]
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["own_message_count"] == 3

    def test_rewinding_a_copy_rewinds_its_original(self, store: SessionStore) -> None:
        """No view shows it under either of its ids."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "2", "gone 3", "gone 4")
        repeated = compact(store, "s", 2)[1:]
        store.edits.rewind_to_message("s", repeated[0])
        assert "gone" not in everything_shown(store, "s", [*ids, *repeated])
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["message_count"], session["own_message_count"]) == (1, 2)
        assert store.edits.restore_rewound("s", repeated[0]) == 2
        assert contents(store, "s")[1:] == ["gone 3", "gone 4"]
        assert findable(store).count("gone 3") == 1

    def test_only_the_latest_session_of_a_conversation_can_be_rewound(self, store: SessionStore) -> None:
        """Messages of an earlier session may be in the context of the latest one."""
        chain(store, "a", "b")
        (message,) = store.messages.get_messages("a")
        with expect_refusal("continues in 'b'"):
            store.edits.rewind_to_message("a", message["id"])
        assert contents(store, "a") == ["a"]

    def test_a_branch_keeps_messages_that_its_original_rewinds(self, store: SessionStore) -> None:
        """Its context, search and counts include them; the original no longer shows them."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "one", "two", "three")
        store.rotation.branch_session("s", "b")
        store.edits.rewind_to_message("s", ids[1])
        assert (contents(store, "s"), contents(store, "b")) == (["one"], ["one", "two", "three"])
        assert set(findable(store)) == {"one", "two", "three"}
        assert len(findable(store)) == 3
        assert not store.maintenance.miscounted_sessions() and not store.maintenance.lost_repetitions()
        store.deletion.delete_session("s")
        assert contents(store, "b") == ["one", "two", "three"]

    def test_rewinding_a_copy_of_a_copy_rewinds_the_original(self, store: SessionStore) -> None:
        """A copy of a copy refers to the original message."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "gone 2")
        repeated = [compact(store, "s", 1)[1], compact(store, "s", 1)[1]]
        store.edits.rewind_to_message("s", repeated[-1])
        assert "gone" not in everything_shown(store, "s", [*ids, *repeated])
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == 1

    def test_a_refused_compression_changes_nothing(self, store: SessionStore) -> None:
        """The context is replaced as a whole or not at all."""
        store.sessions.create_session("s", "cli")
        say(store, "s", "1", "2")
        before = store.transfer.export_session("s")
        with expect_refusal("role"):
            store.edits.archive_and_compact("s", [{"role": "user", "content": "ok"}, {"content": "no role"}])
        assert store.transfer.export_session("s") == before

    def test_clearing_keeps_the_session(self, store: SessionStore) -> None:
        """It then has no messages and no counts, and the feed reports the change."""
        store.sessions.create_session("s", "cli", started_at=1.0, title="T")
        ids = say(store, "s", "gone 1", "gone 2")
        head = store.feed.head()
        assert store.edits.clear_messages("s") == 2
        assert "gone" not in everything_shown(store, "s", ids)
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["message_count"], session["tool_call_count"], session["title"]) == (0, 0, "T")
        assert session["last_active"] == 1.0
        assert any(change.from_message is not None for change in store.feed.changes_after(head.change, 10))

    def test_redacting_removes_all_text_of_a_message(self, store: SessionStore) -> None:
        """The row stays, and the feed reports the change."""
        store.sessions.create_session("s", "cli")
        words = dict.fromkeys(("content", "reasoning", "reasoning_content", "unknown"), "secret")
        number = store.messages.append_message(
            "s", "assistant", **words, tool_calls=[{"secret": 1}], reasoning_details=["secret"],
            codex_message_items=["secret"], codex_reasoning_items=["secret"],
        )  # fmt: skip
        head = store.feed.head()
        assert store.edits.redact_message(number, "[gone]")
        assert "secret" not in everything_shown(store, "s", [number])
        assert contents(store, "s") == ["[gone]"]
        assert {change.from_message for change in store.feed.changes_after(head.change, 10)} == {number}
        assert not store.edits.redact_message(10**6)
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["message_count"], session["tool_call_count"]) == (1, 0)

    def test_redacting_a_message_redacts_all_its_copies(self, store: SessionStore) -> None:
        """Any of them can be named."""
        for which in (0, 1, 2):
            name = f"s{which}"
            store.sessions.create_session(name, "cli")
            (number,) = say(store, name, f"secret {which}")
            numbers = [number, compact(store, name, 1)[1], compact(store, name, 1)[1]]
            assert store.edits.redact_message(numbers[which])
            assert f"secret {which}" not in everything_shown(store, name, numbers)
