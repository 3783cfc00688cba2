"""ChatGPT's exports: every message of every branch, once, in chat form."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers.exports.chatgpt import ChatGPT
from memoranda.importers.reader_protocol import Problem
from tests.examples import examples
from tests.importers.exports.samples import chatgpt, edited, node, with_tools, words, write_json
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def contents(home: Home, session_id: str) -> list[Any]:
    return [message.get("content") for message in home.messages(session_id)]


def test_the_visible_branch_is_the_session_and_others_are_branches(home: Home, tmp_path: Path) -> None:
    """A branch has only its own messages."""
    summary = home.take(ChatGPT(), write_json(tmp_path / "conversations.json", [edited()]))
    assert contents(home, "chatgpt-conv-1") == [
        "How do locks work?", "They keep others out.", "And in Python?", "With a context manager."
    ]  # fmt: skip
    assert contents(home, "chatgpt-conv-1~u2") == ["And in Rust?", "With a guard."]
    rows = home.everything()
    branch = rows["chatgpt-conv-1~u2"]
    assert (branch["parent_session_id"], branch["relation"]) == ("chatgpt-conv-1", "branch")
    row = rows["chatgpt-conv-1"]
    assert (row["title"], row["model"], row["started_at"]) == ("A talk", "gpt-4", 1_700_000_000.5)
    assert (summary.messages, summary.count("new"), summary.problem_count) == (6, 2, 0)
    assert summary.skipped == {"node without a message": 1, "empty message": 1}


def test_tools_reasoning_pictures_and_unknown_kinds_are_kept(home: Home, tmp_path: Path) -> None:
    """In their order; an output belongs to the call before it."""
    home.take(ChatGPT(), write_json(tmp_path / "conversations.json", [with_tools()]))
    picture, thought, call, output, quote, recap, unknown, answer = home.messages("chatgpt-conv-2")
    assert picture["content"][1] == {"type": "text", "text": "What is it?"}
    assert picture["content"][0]["asset_pointer"] == "sediment://file_1"
    assert thought["reasoning"] == "Looking\nIt may be a cat."
    assert call["tool_calls"] == [
        {"id": "conv-2/c1", "type": "function", "function": {"name": "python", "arguments": "print(1)"}}
    ]
    assert (output["role"], output["content"], output["tool_name"], output["tool_call_id"]) == (
        "tool", "1", "python", "conv-2/c1"
    )  # fmt: skip
    assert (quote["content"], quote["tool_call_id"]) == ("Cats\nhttps://example.org\nCats purr.", "conv-2/c1")
    assert recap["reasoning"] == "Thought for 5s"
    assert unknown["content"] == [{"type": "brand_new", "payload": {"x": 1}}]
    assert (answer["content"], answer["finish_reason"], answer["attachments"]) == (
        "A cat.", "stop", [{"name": "cat.png"}]
    )  # fmt: skip
    row = home.everything()["chatgpt-conv-2"]
    assert (row["title"], row["model"], row["chatgpt_gizmo_id"]) == (None, "gpt-5", "g-p-123")
    assert row["chatgpt_custom_instructions"] == {"user_profile": "I am Ada.", "user_instructions": "Be brief."}


def test_exports_of_the_first_years_have_fewer_fields(home: Home, tmp_path: Path) -> None:
    """Only `id`, no current node, no recipient, and null in many places."""
    old = {
        "id": "conv-0", "title": "Old", "create_time": 1_670_000_000.0, "update_time": None, "moderation_results": [],
        "mapping": {
            "r": {"id": "r", "message": None, "parent": None, "children": ["u"]},
            "u": {"id": "u", "parent": "r", "children": ["a"], "message": {
                "id": "u", "author": {"role": "user", "name": None}, "create_time": None,
                "content": {"content_type": "text", "parts": ["hi"]}, "metadata": None}},
            "a": {"id": "a", "parent": "u", "children": [], "message": {
                "id": "a", "author": {"role": "assistant"}, "create_time": 1_670_000_001.0,
                "content": {"content_type": "text", "parts": ["hello"]}, "metadata": {"model_slug": "davinci"}}},
        },
    }  # fmt: skip
    home.take(ChatGPT(), write_json(tmp_path / "conversations.json", [old]))
    assert [(each["role"], each["content"]) for each in home.messages("chatgpt-conv-0")] == [
        ("user", "hi"), ("assistant", "hello")
    ]  # fmt: skip


def test_a_later_export_adds_only_what_is_new(home: Home, tmp_path: Path) -> None:
    """Even when another branch is visible by then: nothing is added twice."""
    file = write_json(tmp_path / "conversations.json", [edited()])
    home.take(ChatGPT(), file)
    later = edited()
    later["mapping"]["u9"] = node("u9", "a2", words("user", "Thanks!"))
    later["current_node"] = "u9"
    summary = home.take(ChatGPT(), write_json(file, [later, {"conversation_id": "x", "mapping": {}}]))
    assert summary.messages == 1
    everything = [text for name in home.everything() for text in contents(home, name)]
    assert sorted(everything) == sorted(
        ["How do locks work?", "They keep others out.", "And in Python?", "With a context manager.", "And in Rust?",
         "With a guard.", "Thanks!"]
    )  # fmt: skip


def test_an_element_that_is_not_a_conversation_is_reported(tmp_path: Path) -> None:
    """By its number; and so is a message without an author."""
    bad = chatgpt("conv-3", node("u", None, {"content": {"content_type": "text", "parts": ["x"]}}))
    bad["mapping"]["odd"] = 7
    file = write_json(tmp_path / "conversations.json", [5, {"id": "x"}, bad])
    [item] = ChatGPT().scan(file)
    assert [each.text for each in ChatGPT().read(item) if isinstance(each, Problem)] == [
        "element 1 of the list is not a conversation: it has no id or no messages",
        "element 2 of the list is not a conversation: it has no id or no messages",
        "message u does not say who wrote it",
        "message odd cannot be understood",
    ]


def test_a_session_is_resumed_at_its_address() -> None:
    """A branch at the address of its conversation."""
    assert ChatGPT().resume_command("conv-1~u2", None) == "https://chatgpt.com/c/conv-1"


_names = st.sampled_from(["a", "b", "c", "d", "", "\ud800"])
_text = st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)
_content = st.fixed_dictionaries(
    {"content_type": st.sampled_from(["text", "code", "thoughts", "multimodal_text", "user_editable_context", "new"])},
    optional={"parts": _json, "text": _json, "thoughts": _json, "content": _json, "user_profile": _json},
)
_message = st.fixed_dictionaries(
    {},
    optional={
        "author": st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", ""])}) | _json,
        "content": _content | _json,
        "create_time": _json | st.floats(),
        "recipient": st.sampled_from(["all", "python"]) | _json,
        "metadata": _json,
    },
)
_node = st.fixed_dictionaries({"message": _message | _json}, optional={"parent": st.none() | _names})
_conversation = st.fixed_dictionaries(
    {"mapping": st.dictionaries(_names, _node | _json, max_size=5) | _json, "id": st.sampled_from(["x", "y"]) | _json},
    optional={"current_node": _names | _json, "title": _json, "create_time": _json},
)


@settings(max_examples=examples(60))
@given(conversations=st.lists(_conversation | _json, max_size=4))
def test_a_second_import_adds_nothing_and_nothing_is_lost_silently(conversations: list[Any]) -> None:
    """For any export, every message is new, known, skipped or a problem."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "conversations.json"
        file.write_text(json.dumps(conversations), "utf-8")
        home = Home(Path(scratch) / "home")
        planned = home.plan(ChatGPT(), file)
        summary = home.take(ChatGPT(), file)
        assert (planned.messages, planned.skipped) == (summary.messages, summary.skipped)
        once = home.everything()
        assert home.take(ChatGPT(), file, rescan=True).messages == 0
        assert home.everything() == once
        nodes = sum(
            len(each["mapping"])
            for each in conversations
            if isinstance(each, dict) and each.get("id") in ("x", "y") and isinstance(each["mapping"], dict)
        )
        stored = sum(len(row["messages"]) for row in once.values())
        assert stored == summary.messages
        assert stored + summary.skipped.total() + summary.problem_count + summary.messages_known >= nodes
        home.store.close()
