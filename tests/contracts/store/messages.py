"""Contracts of messages: the store returns appended messages completely, in order, once, also by external id."""

import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import START
from tests.contracts.store.assertions import contents, expect_refusal, findable

CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls 文档"}'}},
    {"id": "call_2", "type": "function", "function": {"name": "search", "arguments": "{}"}},
]
# A message with every field.
FULL: dict[str, Any] = {
    "role": "assistant",
    "content": "Here's the answer …",
    "tool_calls": CALLS,
    "tool_call_id": "call_0",
    "tool_name": "terminal",
    "timestamp": 1234.5,
    "token_count": 150,
    "finish_reason": "stop",
    "reasoning": "Let me think\nabout this.",
    "reasoning_content": "And once more.",
    "reasoning_details": [{"type": "reasoning.text", "text": "schön"}],
    "codex_reasoning_items": [{"id": "rs_1", "encrypted_content": "=="}],
    "codex_message_items": [{"id": "msg_1", "phase": "final"}],
    "external_id": "platform-1",
}
TEXTS = ("", " ", "\x00", "a\x00b", "\ud800", "a\udfffb", "\U0001f600\u200d", "\u202e", "\ufeff", "\r\n", "é" * 5000)
STRUCTURES: tuple[Any, ...] = (
    [],
    {},
    [{"type": "text", "text": "look \x00 \ud800 👀"}, {"type": "image_url", "image_url": {"url": "data:image/png,AA"}}],
    {"nested": [[[{"deep": None}]], 1.5, True, -(2**70)]},
    0,
    False,
    3.25,
)  # fmt: skip


class MessageContract:
    def test_every_field_of_a_message_comes_back(self, store: SessionStore) -> None:
        """Columns are decoded, and unknown fields are returned with them."""
        store.sessions.create_session("s", "cli")
        sent = FULL | {"api_content": "exact bytes", "observed": False, "nested": {"é": [None, 1]}}
        number = store.messages.append_message("s", **sent)
        message = store.messages.get_message(number)
        assert message is not None
        assert {name: message[name] for name in sent} == sent
        assert (message["id"], message["session_id"]) == (number, "s")
        assert store.messages.get_messages("s") == [message]

    def test_any_text_comes_back_as_it_was(self, store: SessionStore) -> None:
        """Every text field may contain NUL, unpaired surrogates, emoji and control characters."""
        store.sessions.create_session("s", "cli")
        for text in TEXTS:
            fields = ("content", "tool_name", "tool_call_id", "finish_reason", "reasoning", "reasoning_content", "own")
            number = store.messages.append_message("s", "user", **dict.fromkeys(fields, text))
            message = store.messages.get_message(number)
            assert message is not None
            assert {name: message[name] for name in fields} == dict.fromkeys(fields, text)

    def test_structured_content_comes_back_as_it_was(self, store: SessionStore) -> None:
        """Lists, objects and plain values are not mistaken for text, nor text for them."""
        store.sessions.create_session("s", "cli")
        for content in (*STRUCTURES, *map(json.dumps, STRUCTURES)):
            number = store.messages.append_message(
                "s", "user", content, extra_field=content, reasoning_details={"x": content}
            )
            message = store.messages.get_message(number)
            assert message is not None
            assert message["content"] == content
            assert type(message["content"]) is type(content)
            assert message["extra_field"] == content
            assert message["reasoning_details"] == {"x": content}

    def test_unpaired_surrogates_are_not_joined(self, store: SessionStore) -> None:
        """Two unpaired surrogates next to each other do not become one character."""
        store.sessions.create_session("s", "cli")
        number = store.messages.append_message("s", "user", "\ud83d\ude00")
        message = store.messages.get_message(number)
        assert message is not None
        assert message["content"] == "\ud83d\ude00"

    def test_text_after_a_nul_can_be_found(self, store: SessionStore) -> None:
        """A scan of the store sees all of a message."""
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "before\x00needle")
        store.messages.append_message("s", "user", [{"type": "text", "text": "before\x00needle"}])
        assert len(store.feed.messages_like(["%needle%"], START, 10)) == 2

    def test_values_that_json_cannot_represent_are_refused_or_kept(self, store: SessionStore) -> None:
        """Keys that are not text do not silently become text."""
        store.sessions.create_session("s", "cli")
        content = [{1: "one"}]
        try:
            number = store.messages.append_message("s", "user", content)
        except ValueError:
            assert contents(store, "s") == []
            return
        message = store.messages.get_message(number)
        assert message is not None
        assert message["content"] == content

    def test_a_refused_message_stores_nothing(self, store: SessionStore) -> None:
        """The error says what is wrong, and nothing was counted or stored."""
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "before")
        before, head = store.sessions.get_session("s"), store.feed.head()
        circle: list[Any] = []
        circle.append(circle)
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        broken: list[tuple[dict[str, Any], str]] = [
            ({"role": ""}, "role"),
            ({"role": None}, "role"),
            ({"role": 5}, "role"),
            ({"content": b"bytes"}, "json"),
            ({"content": {1, 2}}, "json"),
            ({"content": circle}, ""),
            ({"content": deep}, ""),
            ({"something": object()}, "json"),
            ({"timestamp": "yesterday"}, "time"),
            ({"timestamp": float("nan")}, "time"),
            ({"timestamp": float("inf")}, "time"),
            ({"timestamp": True}, "time"),
            ({"token_count": "many"}, "token_count"),
            ({"token_count": 1.5}, "token_count"),
            ({"tool_name": 5}, "tool_name"),
            ({"external_id": 5}, "external_id"),
            ({"reasoning": ["x"]}, "reasoning"),
        ]
        for fields, word in broken:
            with expect_refusal(word):
                store.messages.append_message("s", **({"role": "user", "content": "x"} | fields))
        assert store.sessions.get_session("s") == before
        assert store.feed.head() == head
        assert contents(store, "s") == ["before"]

    def test_invalid_messages_are_refused_clearly(self, store: SessionStore) -> None:
        """For example, a single message instead of a list, or a text."""
        store.sessions.create_session("s", "cli")
        for wrong in ({"role": "user", "content": "x"}, ["x"], [None]):
            with expect_refusal("object with a role"):
                store.messages.append_messages("s", wrong)  # type: ignore[arg-type]
        assert contents(store, "s") == []

    def test_numbers_that_no_database_stores_are_refused_clearly(self, store: SessionStore) -> None:
        """The error is the store's, not the database's."""
        store.sessions.create_session("s", "cli")
        with expect_refusal("time"):
            store.messages.append_message("s", "user", "x", timestamp=10**400)
        with expect_refusal("token_count"):
            store.messages.append_message("s", "user", "x", token_count=2**63)
        with expect_refusal("time"):
            store.sessions.create_session("t", "cli", started_at=10**400)
        assert contents(store, "s") == []

    def test_names_that_no_database_stores_are_refused_clearly(self, store: SessionStore) -> None:
        """An unpaired surrogate in an id, source, role or user is refused by the store, in every read and write."""
        store.sessions.create_session("s", "cli")
        with expect_refusal():
            store.sessions.create_session("\ud800", "cli")
        with expect_refusal():
            store.sessions.create_session("t", "\ud800")
        with expect_refusal():
            store.sessions.create_session("t", "cli", user_id="\ud800")
        with expect_refusal():
            store.messages.append_message("s", "\ud800", "x")
        with suppress(ValueError):
            assert store.sessions.get_session("\ud800") is None
        with suppress(ValueError):
            assert store.messages.get_messages("\ud800") == []
        assert store.listing.session_count() == 1

    def test_a_system_prompt_comes_back_as_it_was(self, store: SessionStore) -> None:
        """A prompt that cannot be stored is refused."""
        for number, text in enumerate(TEXTS):
            try:
                store.sessions.create_session(f"s{number}", "cli", system_prompt=text)
            except ValueError as error:
                assert "system_prompt" in str(error) and not text.isprintable()
                continue
            session = store.sessions.get_session(f"s{number}")
            assert session is not None
            assert session["system_prompt"] == text

    def test_ids_grow_and_are_never_reused(self, store: SessionStore) -> None:
        """This is true even after the last message was deleted."""
        store.sessions.create_session("s", "cli")
        first, second = (store.messages.append_message("s", "user", text) for text in ("1", "2"))
        store.edits.clear_messages("s")
        third = store.messages.append_message("s", "user", "3")
        store.deletion.delete_session("s")
        store.sessions.create_session("s", "cli")
        assert first < second < third < store.messages.append_message("s", "user", "4")

    def test_ids_are_not_reused_when_the_latest_message_is_deleted_first(self, store: SessionStore) -> None:
        """Deleting an earlier session afterwards does not free the ids of a later one."""
        for name in ("a", "b"):
            store.sessions.create_session(name, "cli")
            last = store.messages.append_message(name, "user", name)
        store.deletion.delete_session("b")
        store.deletion.delete_session("a")
        store.sessions.create_session("c", "cli")
        assert store.messages.append_message("c", "user", "c") > last

    def test_messages_are_returned_in_the_order_of_recording(self, store: SessionStore) -> None:
        """Their timestamps do not matter."""
        store.sessions.create_session("s", "cli")
        for timestamp in (30.0, 10.0, 20.0, 20.0):
            store.messages.append_message("s", "user", str(timestamp), timestamp=timestamp)
        assert contents(store, "s") == ["30.0", "10.0", "20.0", "20.0"]
        assert [row["timestamp"] for row in store.messages.get_messages("s", limit=2, offset=1)] == [10.0, 20.0]

    def test_the_timestamp_is_the_callers_else_now(self, store: SessionStore) -> None:
        """It may be a number or a datetime, even before 1970."""
        store.sessions.create_session("s", "cli")
        timestamps: list[tuple[Any, float]] = [
            (5, 5.0), (-1.5, -1.5), (0, 0.0), (datetime(2020, 1, 1, tzinfo=UTC), 1577836800.0),
        ]  # fmt: skip
        for timestamp, expected in timestamps:
            store.messages.append_message("s", "user", "x", timestamp=timestamp)
            assert store.messages.get_messages("s")[-1]["timestamp"] == expected
        before = time.time()
        store.messages.append_message("s", "user", "x")
        assert before <= store.messages.get_messages("s")[-1]["timestamp"] <= time.time()

    def test_the_last_activity_is_the_latest_message(self, store: SessionStore) -> None:
        """The start of the session does not count, even if the messages are older."""
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "x", timestamp=1000.0)
        store.messages.append_message("s", "user", "x", timestamp=900.0)
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["last_active"] == 1000.0

    def test_the_last_activity_is_the_same_counted_or_recounted(self, store: SessionStore) -> None:
        """Whether messages of compression count as activity does not depend on how it is counted."""
        store.sessions.create_session("s", "cli", started_at=50.0)
        store.edits.archive_and_compact(
            "s", [{"role": "user", "content": "in short", "is_summary": True, "timestamp": 90.0}]
        )
        store.messages.append_message("s", "user", "x", timestamp=10.0)
        counted = store.sessions.get_session("s")
        store.maintenance.recount_sessions(["s"])
        assert store.sessions.get_session("s") == counted

    def test_a_batch_is_all_or_nothing(self, store: SessionStore) -> None:
        """If one message is invalid, none is stored."""
        store.sessions.create_session("s", "cli")
        ids = store.messages.append_messages(
            "s", [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
        )
        assert ids == [row["id"] for row in store.messages.get_messages("s")]
        with expect_refusal("role"):
            store.messages.append_messages("s", [{"role": "user", "content": "3"}, {"content": "4"}])
        assert contents(store, "s") == ["1", "2"]
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == 2
        assert store.messages.append_messages("s", []) == []

    def test_messages_and_their_tool_calls_are_counted(self, store: SessionStore) -> None:
        """Calls may be a list or JSON text."""
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "assistant", None, tool_calls=CALLS)
        store.messages.append_message("s", "assistant", None, tool_calls=json.dumps(CALLS))
        store.messages.append_message("s", "assistant", "none", tool_calls=[])
        session = store.sessions.get_session("s")
        assert session is not None
        assert (session["message_count"], session["tool_call_count"]) == (3, 4)
        assert [row["tool_calls"] for row in store.messages.get_messages("s")][:2] == [CALLS, CALLS]

    def test_a_copy_without_its_original_counts(self, store: SessionStore) -> None:
        """The message that it refers to does not exist, so the copy is the only record."""
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "said", copy_of=999_999)
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == 1
        assert store.maintenance.miscounted_sessions() == []

    def test_is_summary_must_be_a_boolean(self, store: SessionStore) -> None:
        """Text is refused, because a message that is wrongly marked as a summary would not be found."""
        store.sessions.create_session("s", "cli")
        with expect_refusal("is_summary"):
            store.messages.append_message("s", "user", "x", is_summary="no")
        store.messages.append_message("s", "user", "x", is_summary=0)
        assert findable(store) == ["x"]

    def test_a_message_that_is_not_a_summary_counts(self, store: SessionStore) -> None:
        """`is_summary=False` is the same as no value."""
        store.sessions.create_session("s", "cli")
        number = store.messages.append_message("s", "user", "said", is_summary=False)
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["message_count"] == 1
        assert store.conversations.window_around(number, 1) is not None

    def test_a_callers_own_fields_under_the_names_of_the_store_are_kept(self, store: SessionStore) -> None:
        """The store's own fields win; all others are returned, even after export and import."""
        store.sessions.create_session("s", "cli")
        own = {"id": "msg_1", "extra": {"a": 1}, "content_format": "markdown", "active": "yes"}
        store.messages.append_messages("s", [{"role": "user", "content": "x", "rewound": None, **own}])
        (message,) = store.messages.get_messages("s")
        assert message["shadowed"] == own
        assert isinstance(message["id"], int)
        exported = store.transfer.export_session("s")
        assert exported is not None
        store.transfer.import_sessions([exported | {"id": "t", "extra": {"of": "the session"}}])
        assert store.messages.get_messages("t")[0]["shadowed"] == own
        session = store.transfer.export_session("t")
        assert session is not None
        assert session["extra"] == {"of": "the session"}
        assert store.messages.get_messages_as_conversation("t") == [{"role": "user", "content": "x"}]

    def test_messages_for_chat_apis_have_only_known_fields(self, store: SessionStore) -> None:
        """Empty fields are omitted, and so are fields that only the store needs."""
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "hi", timestamp=1.0, external_id="e", token_count=4)
        store.messages.append_message("s", "assistant", None, tool_calls=CALLS, reasoning="hm")
        store.messages.append_message("s", "tool", "done", tool_call_id="call_1", tool_name="terminal")
        assert store.messages.get_messages_as_conversation("s") == [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": CALLS, "reasoning": "hm"},
            {"role": "tool", "content": "done", "tool_call_id": "call_1", "tool_name": "terminal"},
        ]
        store.sessions.create_session("e", "cli")
        store.messages.append_message("e", "assistant", "hi", reasoning="", reasoning_content="")
        (chat,) = store.messages.get_messages_as_conversation("e")
        assert chat == {"role": "assistant", "content": "hi", "reasoning_content": ""}

    def test_the_callers_objects_are_not_changed(self, store: SessionStore) -> None:
        """The store adds nothing to a message that it is passed."""
        store.sessions.create_session("s", "cli")
        message = json.loads(json.dumps(FULL))
        store.messages.append_messages("s", [message])
        assert message == FULL


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
