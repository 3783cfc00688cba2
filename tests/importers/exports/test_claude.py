"""Claude's exports: messages, tools, thoughts and attachments of every year, once, in chat form."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers.exports.claude import ClaudeExport
from memoranda.importers.reader_protocol import Problem
from tests.examples import examples
from tests.importers.exports.samples import ROOT_PARENT, claude, spoken, write_json, write_zip
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def imported(home: Home, file: Path, *conversations: Any) -> list[dict[str, Any]]:
    """Import a file and return the messages of the first session."""
    home.take(ClaudeExport(), write_json(file, list(conversations)))
    return home.messages(f"claude-{conversations[0]['uuid']}")


def test_a_conversation_comes_with_its_title_and_times(home: Home, tmp_path: Path) -> None:
    """Also from an archive in the form of late 2026, with one archive for each part of the export."""
    chat = claude("c-1", spoken("m1", "human", "hello"), spoken("m2", "assistant", "Hi!"), summary="A greeting.")
    home.take(ClaudeExport(), write_zip(tmp_path / "conversations-000.zip", {"conversations.json": [chat]}).parent)
    row = home.everything()["claude-c-1"]
    assert (row["title"], row["source"], row["claude_summary"]) == ("A chat", "claude", "A greeting.")
    assert row["started_at"] == 1748771999.0
    assert [(each["role"], each["content"], each["external_id"]) for each in row["messages"]] == [
        ("user", "hello", "c-1/m1"), ("assistant", "Hi!", "c-1/m2")
    ]  # fmt: skip


def test_an_answer_that_uses_tools_becomes_several_messages(home: Home, tmp_path: Path) -> None:
    """Reasoning and calls, the results, and the text after them."""
    blocks = [
        {"type": "thinking", "thinking": "I should look.", "start_timestamp": "2025-06-01T10:00:01Z"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "cats"}},
        {"type": "tool_result", "tool_use_id": "toolu_1", "name": "web_search", "is_error": False,
         "content": [{"type": "text", "text": "Cats purr."}], "start_timestamp": "2025-06-01T10:00:05Z"},
        {"type": "tool_use", "name": "artifacts", "input": {"command": "create"}},
        {"type": "tool_result", "name": "artifacts", "is_error": True, "content": [{"type": "link", "title": "T"}]},
        {"type": "token_budget"},
        {"type": "text", "text": "They purr.", "citations": [{"uuid": "x", "url": "https://example.org"}]},
        {"type": "hologram", "light": 7},
    ]  # fmt: skip
    chat = claude("c-2", spoken("m1", "assistant", "ignored when there are blocks", content=blocks))
    first, result, call, failed, last = imported(home, tmp_path / "conversations.json", chat)
    assert (first["content"], first["reasoning"]) == ("Let me look.", "I should look.")
    assert first["tool_calls"][0]["function"] == {"name": "web_search", "arguments": '{"query": "cats"}'}
    assert (result["role"], result["content"], result["tool_call_id"]) == ("tool", "Cats purr.", "toolu_1")
    assert result["timestamp"] - first["timestamp"] == 4
    assert (call["tool_calls"][0]["id"], failed["tool_call_id"], failed["is_error"]) == ("c-2/m1-4", "c-2/m1-4", True)
    assert failed["content"] == [{"type": "link", "title": "T"}]
    assert last["content"][0] == {"type": "text", "text": "They purr."}
    assert last["content"][2] == {"type": "hologram", "light": 7}
    assert [each["external_id"] for each in (first, result, call, failed, last)] == [
        "c-2/m1", "c-2/m1:1", "c-2/m1:2", "c-2/m1:3", "c-2/m1:4"
    ]  # fmt: skip


def test_attachments_come_with_their_text_and_files_by_name(home: Home, tmp_path: Path) -> None:
    """Long texts that were pasted are attachments, and often all that a message has."""
    attachment = {"file_name": "", "file_size": 9, "file_type": "txt", "extracted_content": "line one"}
    files = {
        "files": [{"file_name": "cat.png", "file_uuid": "f1"}],
        "files_v2": [{"file_name": "cat.png", "file_uuid": "f1"}],
    }
    message = spoken("m1", "human", "", content=[], attachments=[attachment], **files)
    [found] = imported(home, tmp_path / "conversations.json", claude("c-3", message))
    assert found["content"] == [
        {"type": "attachment", "file_size": 9, "file_type": "txt", "text": "line one"},
        {"type": "file", "file_name": "cat.png", "file_uuid": "f1"},
    ]


def test_exports_from_before_there_were_blocks_are_plain_text(home: Home, tmp_path: Path) -> None:
    """Their messages follow each other in the order of the list."""
    old = {"uuid": "m1", "text": "hello", "sender": "human", "created_at": "2023-08-01T10:00:00.000000+00:00"}
    [found] = imported(home, tmp_path / "conversations.json", claude("c-4", old))
    assert (found["role"], found["content"]) == ("user", "hello")


def test_edited_messages_make_branches(home: Home, tmp_path: Path) -> None:
    """The branch that ends in the latest message is the session, unless the export names the end."""
    messages = [
        spoken("m1", "human", "one", parent_message_uuid=ROOT_PARENT),
        spoken("m2", "assistant", "two", parent_message_uuid="m1", created_at="2025-06-01T10:00:01Z"),
        spoken("m3", "human", "three", parent_message_uuid="m2", created_at="2025-06-01T10:00:09Z"),
        spoken("m3b", "human", "other three", parent_message_uuid="m2", created_at="2025-06-01T10:00:05Z"),
        spoken("m4b", "assistant", "other four", parent_message_uuid="m3b", created_at="2025-06-01T10:00:06Z"),
    ]
    main = imported(home, tmp_path / "conversations.json", claude("c-5", *messages))
    assert [each["content"] for each in main] == ["one", "two", "three"]
    assert [each["content"] for each in home.messages("claude-c-5~m3b")] == ["other three", "other four"]
    assert home.everything()["claude-c-5~m3b"]["parent_session_id"] == "claude-c-5"
    named = claude("c-6", *messages, current_leaf_message_uuid="m4b")
    assert [each["content"] for each in imported(home, tmp_path / "two" / "conversations.json", named)] == [
        "one", "two", "other three", "other four"
    ]  # fmt: skip


def test_elements_that_are_not_conversations_or_messages_are_reported(tmp_path: Path) -> None:
    """And empty messages are counted."""
    chat = claude("c-7", spoken("m1", "human", "", content=[]), {"uuid": "m2", "text": "x"})
    [item] = ClaudeExport().scan(write_json(tmp_path / "conversations.json", [{"chat_messages": 1}, chat]))
    assert [each.text for each in ClaudeExport().read(item) if isinstance(each, Problem)] == [
        "element 1 of the list is not a conversation: it has no uuid or messages",
        "message 2 of conversation c-7 does not say who wrote it",
    ]


def test_messages_with_the_same_id_are_both_kept(home: Home, tmp_path: Path) -> None:
    """The second gets its number as id."""
    chat = claude("c-8", spoken("m1", "human", "one"), spoken("m1", "human", "two"))
    assert [each["content"] for each in imported(home, tmp_path / "conversations.json", chat)] == ["one", "two"]


def test_a_session_is_resumed_at_its_address() -> None:
    """A branch at the address of its conversation."""
    assert ClaudeExport().resume_command("c-5~m3b", None) == "https://claude.ai/chat/c-5"


_text = st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)
_block = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "token_budget", "new"])},
    optional={"text": _json, "thinking": _json, "id": _json, "name": _json, "input": _json, "content": _json},
)
_names = st.sampled_from(["a", "b", "c", "d"])
_message = st.fixed_dictionaries(
    {"sender": st.sampled_from(["human", "assistant"])},
    optional={
        "uuid": _names | _json,
        "text": _json,
        "content": st.lists(_block | _json, max_size=4) | _json,
        "created_at": _json,
        "parent_message_uuid": _names | _json,
        "attachments": st.lists(st.dictionaries(_text, _json, max_size=2), max_size=2) | _json,
    },
)
_conversation = st.fixed_dictionaries(
    {"uuid": st.sampled_from(["x", "y"]), "chat_messages": st.lists(_message | _json, max_size=5)},
    optional={"name": _json, "created_at": _json, "current_leaf_message_uuid": _names | _json},
)


@settings(max_examples=examples(60))
@given(conversations=st.lists(_conversation | _json, max_size=4))
def test_a_second_import_adds_nothing_and_nothing_is_lost_silently(conversations: list[Any]) -> None:
    """For any export, every message is new, known, skipped or a problem."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "conversations.json"
        file.write_text(json.dumps(conversations), "utf-8")
        home = Home(Path(scratch) / "home")
        planned = home.plan(ClaudeExport(), file)
        summary = home.take(ClaudeExport(), file)
        assert (planned.messages, planned.skipped) == (summary.messages, summary.skipped)
        once = home.everything()
        assert home.take(ClaudeExport(), file, rescan=True).messages == 0
        assert home.everything() == once
        listed = sum(
            len(each["chat_messages"])
            for each in conversations
            if isinstance(each, dict) and each.get("uuid") in ("x", "y") and isinstance(each.get("chat_messages"), list)
        )
        stored = sum(len(row["messages"]) for row in once.values())
        assert stored == summary.messages
        assert stored + summary.skipped.total() + summary.problem_count + summary.messages_known >= listed
        home.store.close()
