"""The scripted model: steps in their order, and complaints about what does not fit."""

import pytest

from memoranda.errors import ModelOverloadedError
from memoranda.models.model import Reply, ToolCall, Usage
from memoranda.testing.scripted.model import ScriptedModel, ScriptError

pytestmark = pytest.mark.slow

HELLO = [{"role": "user", "content": "Hello"}]


def test_each_call_takes_the_next_step() -> None:
    """A reply, an error, or a function of what was sent."""
    with ScriptedModel(
        [Reply("One"), ModelOverloadedError("busy"), lambda system, said, tools: Reply(system + said[0]["content"])]
    ) as model:
        assert model.reply("S", HELLO).text == "One"
        with pytest.raises(ModelOverloadedError):
            model.reply("S", HELLO)
        assert model.reply("S", HELLO).text == "SHello"
    assert [request.system for request in model.requests] == ["S"] * 3


def test_steps_that_were_not_used_are_an_error() -> None:
    """A test that passes with half of its script unused proves half."""
    with pytest.raises(ScriptError, match="1 steps"), ScriptedModel([Reply("never")]):
        pass


def test_a_call_beyond_the_script_is_an_error() -> None:
    """It says which call came, and with what."""
    with pytest.raises(ScriptError, match=r"call 1, .*Hello"):
        ScriptedModel([]).reply("", HELLO)


def test_an_error_under_way_is_not_hidden_by_steps_that_are_left() -> None:
    """The first thing that went wrong is the one to see."""
    with pytest.raises(ZeroDivisionError), ScriptedModel([Reply("left")]):
        raise ZeroDivisionError


def test_text_is_streamed_in_pieces_and_usage_filled_in() -> None:
    """As from a real service."""
    heard: list[str] = []
    calls = (ToolCall("c", "memory", "{}"),)
    model = ScriptedModel(lambda *_: Reply("A rather long answer.", calls), piece=5)
    reply = model.reply("System", HELLO, on_text=heard.append)
    assert heard == ["A rat", "her l", "ong a", "nswer", "."]
    assert reply.usage.input_tokens > 0 < reply.usage.output_tokens
    assert (reply.finish_reason, reply.model) == ("tool_calls", "scripted-model")
    assert ScriptedModel([Reply(usage=Usage(7))]).reply("", HELLO).usage == Usage(7)


def test_requests_are_recorded_as_they_were_sent() -> None:
    """Later changes to the messages do not change the recorded request."""
    said = [{"role": "user", "content": "before"}]
    model = ScriptedModel([Reply("ok")])
    model.reply("", said, deadline=3, max_tokens=9)
    said[0]["content"] = "after"
    assert model.requests[0].messages[0]["content"] == "before"
    assert (model.requests[0].deadline, model.requests[0].max_tokens) == (3, 9)
