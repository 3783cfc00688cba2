"""Old output is shortened, says where the rest is, and stays valid for a chat API."""

import json
from typing import Any

import pytest

from memoranda.agent.compression.plan import prune_message
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.model import Message
from tests.agent.compression.conftest import calls, result, said

pytestmark = pytest.mark.slow


def _shorten(message: Message, **options: Any) -> Message | None:
    return prune_message(LiveMessage(207, message, original_id=7), "s1", **options)


def test_long_output_is_cut_in_the_middle() -> None:
    """Its beginning and its end stay, and it names the message under which all of it is found."""
    text = "first line\n" + "x" * 5_000 + "\nlast line"
    short = _shorten(result("c", text))
    assert short is not None
    assert short["content"].startswith("first line") and short["content"].endswith("last line")
    assert "around_message_id 7 " in short["content"] and '"s1"' in short["content"]
    assert len(short["content"]) < 900
    assert (short["tool_call_id"], short["role"], short["tool_name"]) == ("c", "tool", "terminal")


def test_what_was_cut_is_not_cut_again() -> None:
    """Once is enough, for output and for arguments."""
    for message in (result("c", "x" * 5_000), calls("c", arguments=json.dumps({"text": "y" * 5_000}))):
        short = _shorten(message)
        assert short is not None
        assert _shorten(short) is None


def test_short_messages_are_not_changed() -> None:
    """Texts of the user and the assistant never change, whatever their length."""
    for message in (result("c", "done"), said("user", "x" * 9_000), said("assistant", "x" * 9_000), calls("c")):
        assert _shorten(message) is None


def test_long_arguments_stay_json() -> None:
    """Their texts are cut, names and numbers stay; what was no JSON becomes some."""
    given = {"path": "/a/b", "lines": [1, 2], "content": "z" * 4_000, "nested": {"deep": "w" * 4_000}}
    short = _shorten(calls("c", arguments=json.dumps(given)))
    assert short is not None
    arguments = json.loads(short["tool_calls"][0]["function"]["arguments"])
    assert (arguments["path"], arguments["lines"]) == ("/a/b", [1, 2])
    assert len(arguments["content"]) < 250 and "4,000" in arguments["content"]
    broken = _shorten(calls("c", arguments='{"content": "' + "z" * 4_000))
    assert broken is not None
    assert len(broken["tool_calls"][0]["function"]["arguments"]) < 300
    assert json.loads(broken["tool_calls"][0]["function"]["arguments"])
    assert short["tool_calls"][0]["id"] == "c"


def test_an_old_image_is_replaced_with_a_note() -> None:
    """The text of the message stays; the message is not changed in place."""
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    message = said("user", parts)
    short = _shorten(message)
    assert short is not None
    assert [part["type"] for part in short["content"]] == ["text", "text"]
    assert "message 7" in short["content"][1]["text"]
    assert message["content"] == parts


def test_old_thinking_goes_and_new_thinking_stays() -> None:
    """A vendor wants signed thinking back only while the turn lasts."""
    message = calls("c") | {"reasoning": "hm", "reasoning_details": [{"signature": "s"}]}
    short = _shorten(message)
    assert short is not None
    assert "reasoning" not in short and "reasoning_details" not in short
    assert _shorten(message, thinking=True) is None


def test_structured_output_is_cut_as_text() -> None:
    """A tool's parts count together; what stays is text."""
    short = _shorten({"role": "tool", "content": [{"type": "text", "text": "x" * 3_000}], "tool_call_id": "c"})
    assert short is not None
    assert isinstance(short["content"], str)
