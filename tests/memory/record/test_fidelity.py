"""A message of any content is returned unchanged, or it is refused and nothing is stored."""

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import SessionError, StorageError
from memoranda.memory.record import message_rows
from memoranda.memory.record.message_rows import checksum_of_row, encode
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.safety.redaction import Redactor
from memoranda.storage.sqlite.engine import SqliteEngine
from tests.examples import examples
from tests.memory.record.conftest import quick_directory

# Any character at all, NUL and halves of surrogate pairs included.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
# Halves that stand beside each other are the subject of a test of their own.
TEXT = ANY_TEXT.filter(lambda text: not re.search("[\ud800-\udbff][\udc00-\udfff]", text))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
STRUCTURE = st.lists(JSON, min_size=1, max_size=4) | st.dictionaries(TEXT, JSON, min_size=1, max_size=4)
COLUMNS = {
    "tool_call_id": TEXT,
    "tool_name": TEXT,
    "finish_reason": TEXT,
    "reasoning": TEXT,
    "reasoning_content": TEXT,
    "tool_calls": st.lists(st.dictionaries(TEXT, JSON, max_size=3), min_size=1, max_size=3),
    "reasoning_details": STRUCTURE,
    "codex_reasoning_items": STRUCTURE,
    "codex_message_items": STRUCTURE,
    "token_count": st.integers(-(2**53), 2**53),
    "timestamp": st.floats(-1e11, 1e11) | st.integers(-(10**11), 10**11),
}
RESERVED = {
    *COLUMNS, "id", "session_id", "role", "content", "external_id", "active", "compacted", "copy_of", "is_summary",
    "content_format", "extra", "message_id", "platform_message_id", "rewound",
}  # fmt: skip
UNKNOWN = st.dictionaries(TEXT.filter(lambda name: name not in RESERVED), JSON, max_size=3)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "développeur"]), "content": JSON},
    optional=COLUMNS,
)


@pytest.fixture(scope="module")
def shared() -> Iterator[SessionStore]:
    with quick_directory() as directory, open_store(directory / "state.db") as opened:
        opened.sessions.create_session("s", "cli")
        yield opened


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(message=MESSAGE, unknown=UNKNOWN)
def test_any_message_is_returned_unchanged(
    shared: SessionStore, message: dict[str, Any], unknown: dict[str, Any]
) -> None:
    """Every field, whether it has a column or not, equal and of the same type."""
    number = shared.messages.append_message("s", **(message | {"unknown fields": unknown}))
    found = shared.messages.get_message(number)
    assert found is not None
    assert {name: found[name] for name in message} == message
    assert type(found["content"]) is type(message["content"])
    assert found["unknown fields"] == unknown


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(unknown=UNKNOWN)
def test_unknown_fields_are_returned_under_their_names(shared: SessionStore, unknown: dict[str, Any]) -> None:
    """Any name works."""
    (number,) = shared.messages.append_messages("s", [{"role": "user", "content": "x", **unknown}])
    found = shared.messages.get_message(number)
    assert found is not None
    assert {name: found[name] for name in unknown} == unknown


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(texts=st.lists(ANY_TEXT, max_size=6))
def test_no_text_breaks_the_reading_of_others(shared: SessionStore, texts: list[str]) -> None:
    """Windows, lists and chats show every message."""
    name = f"session {shared.listing.session_count()}"
    shared.sessions.create_session(name, "cli")
    ids = shared.messages.append_messages(
        name, [{"role": "user", "content": text, "reasoning": text} for text in texts]
    )
    assert (
        len(shared.messages.get_messages(name)) == len(shared.messages.get_messages_as_conversation(name)) == len(texts)
    )
    shared.listing.list_sessions_rich(limit=1)
    if ids:
        window = shared.conversations.window_around(ids[0], 20)
        assert window is not None
        assert [message.id for message in window.messages] == ids


def test_a_message_as_deep_as_can_be_stored_can_be_read(store: SessionStore) -> None:
    """From deep inside a program too, where less of the stack is left."""
    store.sessions.create_session("s", "cli")

    def nested(depth: int) -> Any:
        value: Any = "core"
        for _ in range(depth):
            value = [value]
        return value

    def read_below(steps: int) -> int:
        return read_below(steps - 1) if steps else len(store.messages.get_messages("s"))

    stored = 0
    for depth in (10, 100, 400, 700, 900, 950, sys.getrecursionlimit() - 100, sys.getrecursionlimit() * 2):
        try:
            store.messages.append_message("s", "user", nested(depth))
        except SessionError:
            break
        stored += 1
    assert stored >= 2
    assert read_below(300) == stored


@pytest.mark.slow
def test_a_message_of_a_hundred_megabytes(store: SessionStore) -> None:
    """It is stored and read, and so is what comes after it."""
    text = "x" * 50_000_000 + "部" * 10_000_000 + "y" * 20_000_000
    store.sessions.create_session("s", "cli")
    number = store.messages.append_message("s", "tool", text)
    after = store.messages.append_message("s", "user", "after")
    found = store.messages.get_message(number)
    assert found is not None
    assert found["content"] == text
    assert [row["id"] for row in store.messages.get_messages("s")] == [number, after]


def test_a_message_larger_than_the_database_takes_is_refused(store: SessionStore) -> None:
    """The error says so, and what is around it is as before."""
    store.sessions.create_session("s", "cli")
    store.messages.append_message("s", "user", "before")
    assert isinstance(store.engine, SqliteEngine)
    writer = store.engine._writer
    assert writer is not None
    writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
    before = store.transfer.export_session("s")
    with pytest.raises(StorageError, match="too big"):
        store.messages.append_messages(
            "s", [{"role": "user", "content": "small"}, {"role": "user", "content": "x" * 200_000}]
        )
    assert store.transfer.export_session("s") == before
    assert store.messages.append_message("s", "user", "after")


@pytest.mark.slow
def test_a_refused_structure_is_refused_with_a_redactor_too(path: Path) -> None:
    """Too deep, circular, or not JSON at all: a clear error, never one from below."""
    circle: list[Any] = ["x"] * 1_000
    circle.append(circle)
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    with open_store(path, redactor=Redactor()) as store:
        store.sessions.create_session("s", "cli")
        for content in (circle, deep, {1, 2}, b"bytes", [object()]):
            with pytest.raises(SessionError):
                store.messages.append_message("s", "user", content)
            with pytest.raises(SessionError):
                store.messages.append_message("s", "user", "x", own=content)
            with pytest.raises(SessionError):
                store.messages.append_message("s", "user", "x", tool_calls=[content])
        assert store.messages.get_messages("s") == []


def test_numbers_and_keys_that_json_would_change_are_refused_or_kept(store: SessionStore) -> None:
    """In content, unknown fields and structured columns alike."""
    store.sessions.create_session("s", "cli")
    for value in ([{1: "x"}], {None: "x"}, {True: 1, "true": 2}):
        for fields in ({"content": value}, {"own": value}, {"reasoning_details": value}):
            try:
                number = store.messages.append_message("s", "user", **fields)
            except SessionError:
                continue
            found = store.messages.get_message(number)
            assert found is not None
            assert {name: found[name] for name in fields} == fields


def test_both_names_of_an_external_id_are_not_mixed_up(store: SessionStore) -> None:
    """When a message has two, neither is lost, or it is refused."""
    store.sessions.create_session("s", "cli")
    try:
        number = store.messages.append_message("s", "user", "x", message_id="1", external_id="2")
    except SessionError:
        return
    assert {"1", "2"} <= {str(value) for value in json.loads(json.dumps(store.messages.get_message(number))).values()}


@pytest.mark.parametrize("form", [list, tuple, json.dumps], ids=["list", "tuple", "text"])
def test_tool_calls_are_counted_in_every_form(store: SessionStore, form: Callable[[list[Any]], Any]) -> None:
    """As they come, and when they are counted again."""
    store.sessions.create_session("s", "cli")
    store.messages.append_message("s", "assistant", None, tool_calls=form([{"id": str(number)} for number in range(3)]))
    for _ in range(2):
        session = store.sessions.get_session("s")
        assert session is not None
        assert session["tool_call_count"] == 3
        store.maintenance.recount_sessions(["s"])


def test_a_message_is_cleared_only_if_it_was_written(store: SessionStore) -> None:
    """One that the session has already keeps its text; a rewound one that was edited is stored with its new text."""
    store.sessions.create_session("s", "cli")
    first = {"role": "user", "content": "first\0 one", "external_id": "1"}
    (number,) = store.messages.append_and_clear("s", first)
    assert first == {}
    assert [row["content"] for row in store.messages.get_messages("s")] == ["first\0 one"]
    again = {"role": "user", "content": "first\0 one", "external_id": "1"}
    assert store.messages.append_and_clear("s", again) == [number]
    assert again["content"] == "first\0 one"
    store.edits.rewind_to_message("s", number)
    edited = {"role": "user", "content": "edited", "external_id": "1"}
    (new,) = store.messages.append_and_clear("s", edited)
    assert [(row["id"], row["content"]) for row in store.messages.get_messages("s")] == [(new, "edited")]
    assert list(store.checksums.damaged_messages()) == []


def test_an_append_that_clears_its_message_says_when_there_is_no_session(store: SessionStore) -> None:
    """As every other append does, and the message is still there."""
    message = {"role": "user", "content": "x", "external_id": "1"}
    with pytest.raises(SessionError, match="nowhere"):
        store.messages.append_and_clear("nowhere", message)
    assert message["content"] == "x"


@given(text=st.text(max_size=60), role=st.sampled_from(["user", "tool"]), tool=st.none() | st.text(max_size=9))
def test_a_checksum_is_the_same_in_parts(text: str, role: str, tool: str | None) -> None:
    """However few characters are encoded at once."""
    row = encode({"role": role, "content": text, "timestamp": 1.5, "tool_name": tool})
    whole = checksum_of_row("s", row)
    for size in (1, 7, 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(message_rows, "_ENCODED_AT_ONCE", size)
            assert checksum_of_row("s", row) == whole
