"""Contract of rotation: a compressed conversation has one continuation, all or nothing, and no text is stored twice."""

from memoranda.memory.record.rotation import (
    ContextItem,
    KeptMessage,
    Lease,
    LiveMessage,
    NoLease,
    NotRotated,
    Rotated,
    Summary,
)
from memoranda.memory.record.store import SessionStore
from tests.contracts.store.assertions import contents, expect_refusal, findable, say
from tests.contracts.store.rewind import everything_shown
from tests.contracts.store.transfer import store_content


def rotate(store: SessionStore, old: str, new: str, keep: int = 2) -> tuple[int, ...]:
    """Continue in a new session with a summary and the last messages; return the rows of the new context."""
    live = store.rotation.live_context(old)
    context: list[ContextItem] = [Summary("In short.")]
    context += [KeptMessage(live_message.id) for live_message in live[-keep:]]
    done = store.rotation.rotate_session(old, new, context, last_seen=live[-1].id)
    assert isinstance(done, Rotated)
    return done.message_ids


def begin(store: SessionStore, name: str, *texts: str, user_id: str | None = None) -> list[int]:
    store.sessions.create_session(
        name, "cli", user_id=user_id, model="m", system_prompt="old prompt", title=name.upper()
    )
    return say(store, name, *texts)


class RotationContract:
    def test_a_conversation_continues_in_a_child(self, store: SessionStore) -> None:
        """The old session ends; the child is linked to it, and has a numbered title and the new prompt."""
        ids = begin(store, "a", "1", "2", "3", "4")
        store.sessions.update_session("a", model_config={"t": 1})
        items: list[ContextItem] = [
            KeptMessage(ids[0]),
            Summary("In short: 2."),
            KeptMessage(ids[2]),
            KeptMessage(ids[3]),
        ]
        done = store.rotation.rotate_session("a", "b", items, last_seen=ids[3], system_prompt="new prompt")
        assert isinstance(done, Rotated)
        assert (done.session_id, done.title) == ("b", "A #2")
        old, new = store.sessions.get_session("a"), store.sessions.get_session("b")
        assert old is not None and new is not None
        assert (old["end_reason"], old["successor_id"], old["system_prompt"]) == ("compression", "b", "old prompt")
        assert old["ended_at"] is not None
        assert (new["parent_session_id"], new["relation"], new["conversation_id"]) == ("a", "compression", "a")
        assert (new["source"], new["model"], new["model_config"]) == ("cli", "m", {"t": 1})
        assert (new["system_prompt"], new["ended_at"]) == ("new prompt", None)
        # Another program that deletes sessions without messages must see that this one has some.
        assert (new["message_count"], new["own_message_count"]) == (4, 0)
        assert contents(store, "b") == ["1", "In short: 2.", "3", "4"]
        live = store.rotation.live_context("b")
        assert [live_message.id for live_message in live] == list(done.message_ids)
        assert [live_message.original_id for live_message in live] == [ids[0], 0, ids[2], ids[3]]
        assert [live_message.is_summary for live_message in live] == [False, True, False, False]
        assert live[0].message == {"role": "user", "content": "1"}
        assert contents(store, "a") == ["1", "2", "3", "4"]

    def test_a_copy_has_every_field(self, store: SessionStore) -> None:
        """Tool calls, structured content, reasoning and fields without a column are as they were recorded."""
        store.sessions.create_session("a", "cli")
        calls = [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]
        store.messages.append_messages("a", [
            {"role": "user", "content": [{"type": "text", "text": "é"}, {"type": "image_url", "image_url": "x"}]},
            {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_details": [{"sig": 1}], "own": "o"},
            {"role": "tool", "content": "out \ud800\udc00", "tool_call_id": "c", "tool_name": "ls", "external_id": "e"},
        ])  # fmt: skip
        before = store.messages.get_messages_as_conversation("a")
        rotate(store, "a", "b", 3)
        assert store.messages.get_messages_as_conversation("b")[1:] == before
        rotate(store, "b", "c", 3)
        assert store.messages.get_messages_as_conversation("c")[1:] == before

    def test_a_copy_refers_to_its_original_and_has_its_text(self, store: SessionStore) -> None:
        """Programs that read the tables with plain SQL see what was said, even if a caller passes the text again."""
        begin(store, "a", "1", "2")
        rotate(store, "a", "b", 2)
        rotate(store, "b", "c", 2)
        store.edits.archive_and_compact(
            "c", [{**row, "copy_of": row["id"]} for row in store.messages.get_messages("c")]
        )
        with store.engine.reading() as connection:
            originals = connection.execute(
                "SELECT content FROM messages WHERE content IN ('1', '2') AND copy_of IS NULL"
            ).fetchall()
            copies = connection.execute(
                "SELECT DISTINCT copy.content, original.content, copy.content_format FROM messages copy"
                " JOIN messages original ON original.id = copy.copy_of WHERE copy.is_summary IS NULL"
            ).fetchall()
        assert sorted(originals) == [("1",), ("2",)]
        assert sorted(copies) == [("1", "1", "same"), ("2", "2", "same")]
        assert contents(store, "c")[1:] == ["1", "2"]

    def test_everything_said_is_found_once(self, store: SessionStore) -> None:
        """This is true for any number of continuations; summaries are never found."""
        begin(store, "a", "1", "2", "3")
        for old, new in ("ab", "bc", "cd"):
            rotate(store, old, new, 2)
            say(store, new, f"said in {new}")
        expected = ["1", "2", "3", "said in b", "said in c", "said in d"]
        assert findable(store) == expected
        recorded = [row["content"] for row in store.messages.get_messages_as_conversation("d", include_ancestors=True)]
        assert recorded == expected
        assert contents(store, "d") == ["In short.", "said in b", "said in c", "said in d"]
        assert store.maintenance.miscounted_sessions() == []
        assert store.lineage.get_compression_lineage("a") == ["a", "b", "c", "d"]

    def test_one_conversation_is_one_line_in_a_list(self, store: SessionStore) -> None:
        """Its preview is the user's first message, whichever of its sessions remain."""
        begin(store, "a", "the first words", "2")
        rotate(store, "a", "b")
        (row,) = store.listing.list_sessions_rich()
        assert (row["id"], row["preview"], row["message_count"]) == ("b", "the first words", 2)
        store.deletion.delete_session("a")
        (row,) = store.listing.list_sessions_rich()
        assert (row["id"], row["preview"], row["message_count"]) == ("b", "the first words", 2)

    def test_a_session_is_continued_once(self, store: SessionStore) -> None:
        """A second attempt returns the existing continuation and changes nothing."""
        ids = begin(store, "a", "1", "2")
        rotate(store, "a", "b")
        before = store_content(store)
        again = store.rotation.rotate_session("a", "c", [Summary("x")], last_seen=ids[-1])
        assert again == NotRotated("rotated", "b")
        assert store_content(store) == before

    def test_a_context_that_has_changed_is_not_replaced(self, store: SessionStore) -> None:
        """It has newer messages, or was rewound: the compressed context is not the current one."""
        ids = begin(store, "a", "1", "2")
        say(store, "a", "3")
        assert store.rotation.rotate_session("a", "b", [Summary("x")], last_seen=ids[-1]) == NotRotated("changed")
        store.edits.rewind_to_message("a", ids[1])
        assert store.rotation.rotate_session("a", "b", [Summary("x")], last_seen=ids[1]) == NotRotated("changed")
        assert store.sessions.get_session("b") is None
        session = store.sessions.get_session("a")
        assert session is not None
        assert (session["ended_at"], session["successor_id"]) == (None, None)

    def test_a_refused_rotation_changes_nothing(self, store: SessionStore) -> None:
        """For example, for an unknown session, a used id, a message of another session, or a missing role."""
        ids = begin(store, "a", "1", "2")
        (elsewhere,) = begin(store, "x", "elsewhere")
        before = store_content(store)
        wrong: list[tuple[str, list[ContextItem], str]] = [
            ("x", [KeptMessage(ids[0])], "taken"),
            ("", [KeptMessage(ids[0])], "empty"),
            ("b", [Summary("s"), KeptMessage(elsewhere)], str(elsewhere)),
            ("b", [KeptMessage(ids[0]), KeptMessage(ids[1], {"content": "no role"})], "role"),
        ]
        for new, items, word in wrong:
            with expect_refusal(word):
                store.rotation.rotate_session("a", new, items, last_seen=ids[-1])
        with expect_refusal("missing"):
            store.rotation.rotate_session("missing", "b", [], last_seen=0)
        assert store_content(store) == before

    def test_a_shortened_message_can_still_be_read_in_full(self, store: SessionStore) -> None:
        """The context has the short text and the record the full one; only unshortened messages count as in context."""
        store.sessions.create_session("a", "cli")
        long = store.messages.append_message("a", "tool", "a very long output", tool_call_id="c", tool_name="ls")
        (last,) = say(store, "a", "continue")
        short = {"role": "tool", "content": "[cut]", "tool_call_id": "c", "tool_name": "ls"}
        store.rotation.rotate_session("a", "b", [KeptMessage(long, short), KeptMessage(last)], last_seen=last)
        rotate(store, "b", "c", 2)
        assert contents(store, "c") == ["In short.", "[cut]", "continue"]
        assert findable(store) == ["a very long output", "continue"]
        assert long not in store.messages.live_message_ids("c")
        assert last in store.messages.live_message_ids("c")
        window = store.conversations.window_around(long, 3)
        assert window is not None
        assert [message.content for message in window.messages] == ["a very long output", "continue"]

    def test_deleting_the_original_moves_the_text_to_the_first_copy(self, store: SessionStore) -> None:
        """Every continuation shows it once, whichever members of the chain are deleted first."""
        for gone in ("ab", "ba", "a", "b", "ac", "ca"):
            names = [f"{gone}-{letter}" for letter in "abc"]
            begin(store, names[0], f"{gone} 1", f"{gone} 2")
            rotate(store, names[0], names[1])
            rotate(store, names[1], names[2])
            for letter in gone:
                assert store.deletion.delete_session(f"{gone}-{letter}")
            left = [name for name in names if name[-1] not in gone]
            for name in left:
                assert contents(store, name)[-2:] == [f"{gone} 1", f"{gone} 2"]
            found = [text for text in findable(store) if str(text).startswith(gone + " ")]
            assert found == [f"{gone} 1", f"{gone} 2"]
        assert store.maintenance.miscounted_sessions() == []
        assert store.maintenance.lost_repetitions() == []

    def test_a_shortened_copy_remains_when_its_original_is_deleted(self, store: SessionStore) -> None:
        """Search finds the shortened text."""
        store.sessions.create_session("a", "cli")
        long = store.messages.append_message("a", "tool", "a very long output")
        store.rotation.rotate_session(
            "a", "b", [KeptMessage(long, {"role": "tool", "content": "[cut]"})], last_seen=long
        )
        store.deletion.delete_session("a")
        assert contents(store, "b") == ["[cut]"]
        assert findable(store) == ["[cut]"]

    def test_clearing_the_original_session_keeps_the_text_of_copies(self, store: SessionStore) -> None:
        """A copy is part of its session."""
        begin(store, "a", "1", "2")
        rotate(store, "a", "b")
        assert store.edits.clear_messages("a") == 2
        assert contents(store, "b") == ["In short.", "1", "2"]
        assert findable(store) == ["1", "2"]
        assert store.maintenance.miscounted_sessions() == []

    def test_rewinding_a_copy_changes_the_previous_session_too(self, store: SessionStore) -> None:
        """No view shows a rewound copy or its original; restoring shows both again."""
        ids = begin(store, "a", "1", "gone 2", "gone 3")
        context_ids = rotate(store, "a", "b", 2)
        store.edits.rewind_to_message("b", context_ids[1])
        assert "gone" not in everything_shown(store, "b", [*ids, *context_ids])
        assert contents(store, "a") == ["1"]
        assert store.maintenance.miscounted_sessions() == []
        assert store.edits.restore_rewound("b", context_ids[1]) == 2
        assert contents(store, "a") == ["1", "gone 2", "gone 3"]
        assert contents(store, "b") == ["In short.", "gone 2", "gone 3"]
        assert findable(store) == ["1", "gone 2", "gone 3"]

    def test_a_summary_cannot_be_rewound_to(self, store: SessionStore) -> None:
        """It is refused although its role is user."""
        begin(store, "a", "1", "2")
        context_ids = rotate(store, "a", "b")
        with expect_refusal(str(context_ids[0])):
            store.edits.rewind_to_message("b", context_ids[0])

    def test_redacting_reaches_every_continuation(self, store: SessionStore) -> None:
        """Any of the rows can be named."""
        for which in range(3):
            names = [f"{which}{letter}" for letter in "abc"]
            (number,) = begin(store, names[0], f"secret {which}")
            rows = [number, rotate(store, names[0], names[1], 1)[-1]]
            rows.append(rotate(store, names[1], names[2], 1)[-1])
            assert store.edits.redact_message(rows[which])
            for name in names:
                assert contents(store, name)[-1] == "[redacted]"
                assert f"secret {which}" not in everything_shown(store, name, rows)

    def test_redacting_in_a_branch_redacts_the_original_and_no_other_user(self, store: SessionStore) -> None:
        """If a message of another user claims to be a copy of it, that message keeps its text."""
        (number,) = begin(store, "a", "secret")
        done = store.rotation.branch_session("a", "b")
        begin(store, "x", user_id="bob")
        store.messages.append_message("x", "user", "bob's own words", copy_of=number)
        assert store.edits.redact_message(done.message_ids[0])
        assert contents(store, "a") == contents(store, "b") == ["[redacted]"]
        assert contents(store, "x") == ["bob's own words"]

    def test_restoring_does_not_change_other_messages(self, store: SessionStore) -> None:
        """An earlier copy stays active in the previous session."""
        begin(store, "a", "1", "2")
        context_ids = rotate(store, "a", "b", 2)
        (new,) = say(store, "b", "3")
        store.edits.rewind_to_message("b", new)
        assert store.edits.restore_rewound("b", context_ids[-1]) == 1
        assert (contents(store, "a"), contents(store, "b")) == (["1", "2"], ["In short.", "1", "2", "3"])

    def test_export_then_import_gives_the_same_conversation(self, store: SessionStore, other: SessionStore) -> None:
        """An export has every session in full; the importing store makes copies of it again."""
        begin(store, "a", "1", "2", "3")
        rotate(store, "a", "b")
        say(store, "b", "4")
        rotate(store, "b", "c")
        exported = store.transfer.export_all()
        assert [row["content"] for row in exported[-1]["messages"]] == ["In short.", "3", "4"]
        assert other.transfer.import_sessions(exported).ok
        assert store_content(other) == store_content(store)
        assert findable(other) == findable(store)
        assert other.transfer.import_sessions(exported).messages == 0
        with other.engine.reading() as connection:
            statement = "SELECT count(*) FROM messages WHERE content = '3' AND copy_of IS NULL"
            assert connection.execute(statement).fetchone() == (1,)

    def test_importing_a_continuation_alone_twice_adds_nothing(self, store: SessionStore, other: SessionStore) -> None:
        """This store has the original; in the other one the copy is the only record."""
        begin(store, "a", "1", "2")
        rotate(store, "a", "b")
        exported = store.transfer.export_session("b")
        assert exported is not None
        assert store.transfer.import_sessions([exported]).messages == 0
        assert other.transfer.import_sessions([exported]).messages == 3
        assert other.transfer.import_sessions([exported]).messages == 0
        assert findable(other) == ["1", "2"]

    def test_another_users_message_is_never_referred_to(self, store: SessionStore) -> None:
        """Whatever `copy_of` a caller passes, the message keeps its own text."""
        (theirs,) = begin(store, "a", "the same words", user_id="ann")
        begin(store, "b", user_id="bob")
        store.messages.append_message("b", "user", "the same words", copy_of=theirs)
        store.messages.append_message("b", "user", "other words", copy_of=theirs)
        store.edits.redact_message(theirs)
        assert contents(store, "b") == ["the same words", "other words"]
        store.deletion.delete_session("a")
        assert contents(store, "b") == ["the same words", "other words"]

    def test_a_lease_belongs_to_one_holder(self, store: SessionStore) -> None:
        """It ends when its holder releases it or when it expires, and the holder may renew it."""
        ids = begin(store, "a", "1")
        first = store.rotation.take_compression_lease("a", "one", 60)
        assert isinstance(first, Lease)
        assert store.rotation.take_compression_lease("a", "two") == NoLease("busy")
        assert isinstance(store.rotation.take_compression_lease("a", "one", -1), Lease)
        second = store.rotation.take_compression_lease("a", "two")
        assert isinstance(second, Lease)
        store.rotation.release_compression_lease(first)
        assert store.rotation.take_compression_lease("a", "one") == NoLease("busy")
        store.rotation.release_compression_lease(second)
        assert isinstance(store.rotation.take_compression_lease("a", "one"), Lease)
        store.rotation.rotate_session("a", "b", [KeptMessage(ids[0])], last_seen=ids[0])
        assert store.rotation.take_compression_lease("a", "three") == NoLease("rotated", "b")
        assert isinstance(store.rotation.take_compression_lease("b", "three"), Lease)
        with expect_refusal("missing"):
            store.rotation.take_compression_lease("missing", "one")

    def test_an_invalid_lease_blocks_no_process(self, store: SessionStore) -> None:
        """Another program may have overwritten it."""
        begin(store, "a", "1")
        for garbage in ("", "{}", "[1]", "null", '["x", "y"]'):
            store.usage.set_meta("compression_lease:a", garbage)
            lease = store.rotation.take_compression_lease("a", "one")
            assert isinstance(lease, Lease)

    def test_notes_belong_to_the_conversation(self, store: SessionStore) -> None:
        """Any of its sessions reads and writes them, and they are deleted with it."""
        begin(store, "a", "1", "2")
        assert store.rotation.compression_notes("a") is None
        store.rotation.note_compression("a", "one")
        rotate(store, "a", "b")
        assert store.rotation.compression_notes("b") == "one"
        store.rotation.note_compression("b", "two")
        assert store.rotation.compression_notes("a") == "two"
        store.deletion.delete_sessions(["a", "b"])
        begin(store, "a", "1")
        assert store.rotation.compression_notes("a") is None

    def test_a_context_is_read_with_what_compression_needs(self, store: SessionStore) -> None:
        """It has ids, and whether a message is a copy; the recorded id of an original is its own id."""
        ids = begin(store, "a", "1")
        assert store.rotation.live_context("a") == [LiveMessage(ids[0], {"role": "user", "content": "1"})]
        assert store.rotation.live_context("a")[0].recorded_id == ids[0]
        context_ids = rotate(store, "a", "b", 1)
        assert [live_message.recorded_id for live_message in store.rotation.live_context("b")] == [
            context_ids[0],
            ids[0],
        ]

    def test_the_newest_messages_of_a_context_are_read_with_who_said_what(self, store: SessionStore) -> None:
        """They say the same as the whole context, also where they are copies, and come in the same order."""
        begin(store, "a", "1", "2")
        calls = [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
        store.messages.append_message("a", "assistant", [{"type": "text", "text": "3"}], tool_calls=calls)
        store.messages.append_message("a", "tool", "4", tool_call_id="c1", tool_name="read")
        rotate(store, "a", "b", 4)
        for name in ("a", "b"):
            whole = store.rotation.live_context(name)
            spoken = store.rotation.spoken_context(name, 0, 100)
            for one, full in zip(spoken, whole, strict=True):
                assert (one["id"], bool(one["is_summary"])) == (full.id, full.is_summary)
                assert full.message == {name: one[name] for name in full.message}
            assert store.rotation.spoken_context(name, 0, 2) == spoken[-2:]
            assert store.rotation.spoken_context(name, spoken[0]["id"], 100) == spoken[1:]

    def test_a_title_of_any_length_is_numbered(self, store: SessionStore) -> None:
        """This is true over several continuations, and if other sessions already have numbered titles."""
        begin(store, "a", "1")
        store.titles.set_session_title("a", "x" * 100)
        begin(store, "other", "1")
        store.titles.set_session_title("other", "Plan #2")
        rotate(store, "a", "b", 1)
        rotate(store, "b", "c", 1)
        titles = [store.titles.get_session_title(name) for name in "abc"]
        assert titles[0] == "x" * 100
        assert titles[1] is not None and titles[1].endswith(" #2")
        assert titles[2] is not None and titles[2].endswith(" #3")
        begin(store, "p", "1")
        store.titles.set_session_title("p", "Plan")
        rotate(store, "p", "q", 1)
        assert store.titles.get_session_title("q") == "Plan #3"

    def test_a_branch_has_the_same_context(self, store: SessionStore) -> None:
        """Its rows refer to the originals, with the same prompt; a change to either does not affect the other."""
        ids = begin(store, "a", "1", "2", "3")
        done = store.rotation.branch_session("a", "b")
        assert (done.title, store.rotation.branch_session("a", "c", "Other way").title) == ("A (branch)", "Other way")
        store.titles.set_session_title("a", "T" * 100)
        assert store.rotation.branch_session("a", "e").title == "T" * 90 + "… (branch)"
        session = store.sessions.get_session("b")
        assert session is not None
        assert (session["relation"], session["conversation_id"]) == ("branch", "b")
        assert session["system_prompt"] == "old prompt"
        assert contents(store, "b") == ["1", "2", "3"]
        store.edits.rewind_to_message("b", done.message_ids[1])
        say(store, "b", "another 2")
        assert (contents(store, "a"), contents(store, "b")) == (["1", "2", "3"], ["1", "another 2"])
        assert findable(store) == ["1", "2", "3", "another 2"]
        assert ids[0] in store.messages.live_message_ids("b")
        rotate(store, "b", "d")
        store.deletion.delete_session("a")
        assert contents(store, "d") == ["In short.", "1", "another 2"]
        assert contents(store, "c") == ["1", "2", "3"]
        assert sorted(map(str, findable(store))) == ["1", "2", "3", "another 2"]
        assert store.maintenance.miscounted_sessions() == []
        with expect_refusal("taken"):
            store.rotation.branch_session("b", "c")
