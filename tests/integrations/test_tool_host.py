"""The tool host lists and calls the tools of a home, without any protocol; answers have a size that hosts accept."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoranda
from memoranda.api.memory import Memory
from memoranda.home import config
from memoranda.integrations.tool_host import MAX_BYTES, ToolHost, fit_answer, open_for_hosts
from memoranda.memory.curated.operations import Add
from memoranda.support.home import Home
from memoranda.support.origin import PERSON
from tests.memory.record.damaged_homes import fill_home

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)


@pytest.mark.slow
@given(answer=st.dictionaries(st.text(max_size=8), _values, max_size=6), max_bytes=st.integers(200, 2_000))
def test_an_answer_is_whole_or_says_that_it_is_not(answer: dict[str, Any], max_bytes: int) -> None:
    """It is JSON of at max_bytes so many bytes either way."""
    text = fit_answer({"success": True} | answer, max_bytes)
    shown = json.loads(text)
    assert len(text.encode("utf-8", "replace")) <= max_bytes
    assert shown == json.loads(json.dumps({"success": True} | answer)) or shown["truncated"] is True


def test_the_longest_parts_are_shortened_first() -> None:
    """The short fields about the answer stay."""
    answer = {"success": True, "message": "Saved.", "current_entries": ["字" * 100] * 1_000, "text": "short"}
    shown = json.loads(fit_answer(answer))
    assert (shown["message"], shown["text"]) == ("Saved.", "short")
    assert 0 < len(shown["current_entries"]) < 1_000
    assert len(fit_answer(answer).encode()) <= MAX_BYTES


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with memoranda.open(tmp_path / "home") as opened:
        yield opened


def test_tools_are_called_as_a_model_would_call_them(memory: Memory) -> None:
    """What one tool saves is in the memory text that is read afterwards, and a note in the one read before."""
    tool_host = ToolHost(memory, source="test")
    before = tool_host.memory_text()
    assert [tool.name for tool in tool_host.tools()] == ["memory", "session_search", "remember"]
    answer = tool_host.call("remember", {"text": "The staging database is called heron."})
    assert answer is not None and answer["success"]
    after = tool_host.memory_text()
    assert before is not None and after is not None
    assert "heron" not in before.text and "heron" in before.changes()
    assert "heron" in after.text and after.changes() == ""
    assert tool_host.call("no_such_tool", {}) is None


def test_remember_and_memory_are_screened_alike(memory: Memory) -> None:
    """Both name what the scanner found, in a note too, and both show an entry that a person has allowed."""
    tool_host = ToolHost(memory, source="test")
    text = "We test for the phrase 'ignore all previous instructions'."
    for target in ("memory", "notes"):
        by_remember = tool_host.call("remember", {"text": text, "target": target})
        by_memory = tool_host.call("memory", {"target": target, "action": "add", "content": text})
        assert by_remember is not None and by_remember == by_memory
        assert by_remember["findings"] == ["prompt_injection"]
    memory.curated.apply("memory", [Add(text)], PERSON, frozenset({"prompt_injection"}))
    answer = tool_host.call("remember", {"text": "The staging database is called heron."})
    assert answer is not None and answer["current_entries"][0] == text


def test_without_curated_memory_only_search_remains(tmp_path: Path) -> None:
    """There is no file that `remember` could write to, and no memory text."""
    for key in ("memory.memory_enabled", "memory.user_profile_enabled"):
        config.set_value(Home.at(tmp_path), key, "false")
    with memoranda.open(tmp_path) as memory:
        tool_host = ToolHost(memory, source="test")
        assert [tool.name for tool in tool_host.tools()] == ["session_search"]
        assert tool_host.memory_text() is None


def test_search_keeps_within_what_hosts_accept(tmp_path: Path) -> None:
    """Also where a home allows more; smaller settings stay."""
    for chars, expected in (("50000", 9_500), ("5000", 5_000)):
        config.set_value(Home.at(tmp_path), "search.answer_chars", chars)
        with open_for_hosts(str(tmp_path)) as memory:
            assert memory.config.recall.answer_chars == expected


def test_a_lost_store_is_an_answer_and_memory_works(tmp_path: Path) -> None:
    """A model gets the reason as the answer of the search tool."""
    path = fill_home(tmp_path / "home", 1, 3)
    path.unlink()
    with memoranda.open(path.parent) as memory:
        tool_host = ToolHost(memory, source="test")
        answer = tool_host.call("session_search", {"query": "zebra"})
        assert answer is not None and not answer["success"]
        assert "is missing, but this home had a store with 3 messages" in answer["error"]
        saved = tool_host.call("remember", {"text": "Still works."})
        assert saved is not None and saved["success"]
    assert not path.exists()
