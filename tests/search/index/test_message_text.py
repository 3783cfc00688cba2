"""What of a message is indexed."""

import json
from typing import Any

import pytest

from memoranda.memory.record.feed import FeedMessage
from memoranda.search.index.message_text import (
    CALLS,
    MAX_CHARACTERS,
    OTHER,
    SUMMARY,
    SYSTEM,
    SearchableText,
    kinds_for_roles,
    searchable_text,
)
from memoranda.search.index.postings import ASSISTANT, TOOL, USER

pytestmark = pytest.mark.slow


def _words(role: str = "user", content: Any = None, **fields: Any) -> SearchableText:
    values = {"tool_name": None, "tool_calls": None, "timestamp": 0.0} | fields
    return searchable_text(FeedMessage(1, "s", role, content, **values))


def test_text_is_not_changed() -> None:
    """Plain content is the searchable text."""
    assert _words("user", "Hello\nthere") == SearchableText(USER, "Hello\nthere", "")


def test_structured_content_gives_its_texts() -> None:
    """Text parts and nested results, but no types, ids, images or other blobs."""
    content = [
        {"type": "text", "text": "look at 架构图"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 500}},
        {"type": "image", "source": {"media_type": "image/png", "data": "QUJD" * 500}},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "42 files"}]},
        "bare",
        7,
        None,
        True,
    ]
    assert _words("user", content).text.split() == ["look", "at", "架构图", "42", "files", "bare", "7"]


def test_a_data_url_in_text_is_omitted() -> None:
    """The words around it stay."""
    assert _words("user", "see data:image/png;base64,QUJDRA== here").text.split() == ["see", "here"]


@pytest.mark.parametrize(
    "arguments", ['{"command": "ls -la", "nested": {"paths": ["/tmp/数据"]}, "n": 3}', "ls -la /tmp/数据 3"]
)
def test_a_tool_call_is_its_name_and_plain_values(arguments: str) -> None:
    """No JSON and no names of fields, after the name of the tool; arguments that are not JSON are text."""
    calls = [{"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": arguments}}]
    words = _words("assistant", None, tool_calls=calls)
    assert words.kind == CALLS
    assert words.tool_text.split() == ["terminal", "ls", "-la", "/tmp/数据", "3"]


def test_a_result_is_found_by_the_name_of_its_tool() -> None:
    """The name is searchable together with the output."""
    assert _words("tool", "done", tool_name="web_search") == SearchableText(TOOL, "done", "web_search")


_OWN_TOOLS = [
    "session_search",
    "mcp__memoranda__session_search",
    "memoranda__session_search",
    "memoranda_search",
    "memoranda.session_search",
]


def test_results_of_our_own_tools_are_not_searchable() -> None:
    """They quote the memory."""
    for name in [*_OWN_TOOLS, "memory", "mcp__memoranda__memory", "memoranda_memory", "remember"]:
        assert _words("tool", '{"results": "take both locks"}', tool_name=name) == SearchableText(TOOL, "", "")


def test_queries_of_our_own_searches_are_not_searchable() -> None:
    """The text beside a call is, and so are calls of other tools."""
    for name in _OWN_TOOLS:
        query = json.dumps({"query": "import worker deadlock"})
        own, other = ({"function": {"name": tool, "arguments": query}} for tool in (name, "web_search"))
        assert _words("assistant", None, tool_calls=[own]) == SearchableText(CALLS, "", "")
        assert _words("assistant", "Let me see.", tool_calls=[own]) == SearchableText(ASSISTANT, "Let me see.", "")
        assert _words("assistant", None, tool_calls=[own, other]).tool_text == "web_search\nimport worker deadlock"
        part = {"type": "tool_use", "id": "1", "name": name, "input": {"query": "deadlock"}}
        assert _words("assistant", [{"type": "text", "text": "Let me see."}, part]).text == "Let me see."


def test_what_was_saved_can_be_found() -> None:
    """The arguments of a call that saves something say it for the first time."""
    call = {"function": {"name": "memory", "arguments": '{"action": "add", "content": "The port is 5433."}'}}
    assert "5433" in _words("assistant", None, tool_calls=[call]).tool_text


@pytest.mark.parametrize("calls", ["text", [1, None, {"function": None}, {"function": {"arguments": 5}}], {"a": 1}])
def test_odd_tool_calls_do_no_harm(calls: Any) -> None:
    """Whatever a program stored there."""
    assert _words("assistant", "said", tool_calls=calls).kind == ASSISTANT


def test_kinds() -> None:
    """The roles are distinguished, and a summary has none of them."""
    assert [_words(role, "x").kind for role in ("system", "developer")] == [SYSTEM, OTHER]
    assert _words("user", "x", is_summary=True).kind == SUMMARY
    assert kinds_for_roles(frozenset({"assistant", "function"})) == (ASSISTANT, CALLS, OTHER)


def test_very_long_messages_are_clipped() -> None:
    """The first million characters are enough."""
    assert len(_words("tool", "ab " * MAX_CHARACTERS).text) == MAX_CHARACTERS
    assert len(_words("tool", ["ab " * 100_000] * 20).text) <= MAX_CHARACTERS


def test_deeply_nested_content_does_no_harm() -> None:
    """Values that are nested too deeply are omitted."""
    content: Any = json.loads("[" * 900 + '"deep"' + "]" * 900)
    assert _words("user", ["shallow", content]).text == "shallow"


def test_all_arguments_of_a_tool_can_be_found() -> None:
    """This includes fields with names that only describe content elsewhere."""
    call = {"id": "call_1", "function": {"name": "get_ticket", "arguments": '{"id": "INC-4711", "format": "brief"}'}}
    assert _words("assistant", None, tool_calls=[call]).tool_text.split() == ["get_ticket", "INC-4711", "brief"]
    other = {"name": "get_ticket", "input": {"id": "INC-4712"}}
    assert _words("assistant", None, tool_calls=[other]).tool_text.split() == ["get_ticket", "INC-4712"]
    part = [{"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"id": "INC-4713"}}]
    assert _words("assistant", part).text.split() == ["get", "INC-4713"]


def test_a_list_of_names_is_not_a_blob() -> None:
    """Encoded bytes have long lines, lists have short ones."""
    names = "\n".join(f"host-{number}" for number in range(100))
    assert _words("tool", names).text == names
    assert _words("tool", "QUJD" * 500).text == ""
    assert _words("tool", "\n".join(["QUJD" * 19] * 20)).text == ""
