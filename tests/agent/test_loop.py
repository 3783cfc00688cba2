"""A turn of the agent: what is recorded when, what the model is sent, and what happens when something goes wrong."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from memoranda.agent.events import ContextCompressed, Event, ModelAnswered, ToolCalled, ToolReturned
from memoranda.agent.loop import TURN_LIMIT_ANSWER, Agent
from memoranda.agent.model_messages import INTERRUPTED_ANSWER, INTERRUPTED_CALL
from memoranda.agent.session_views import Compression
from memoranda.agent.settings import AgentSettings
from memoranda.api.memory import Memory
from memoranda.errors import (
    ContextTooLongError,
    ModelOverloadedError,
    ModelReplyError,
    ModelUnreachableError,
    StorageError,
)
from memoranda.models.model import Message, Reply, ToolCall, Usage
from memoranda.support.tool import Tool
from memoranda.testing.scripted.model import ScriptedModel
from tests.agent.rooms import Room, calling
from tests.conftest import OWN_TOOLS

SAVE = json.dumps({"target": "memory", "action": "add", "content": "CI runs on Debian 12."})


def _recorded(memory: Memory, room: Room) -> list[tuple[str, Any]]:
    return [(each["role"], each["content"]) for each in memory.sessions.get_messages(room.id)]


def _noting(calls: list[Any]) -> Any:
    def note(arguments: Mapping[str, Any]) -> dict[str, Any]:
        calls.append(arguments)
        return {"success": True}

    return note


def _tool(name: str, call: Any) -> Tool:
    return Tool(name, "A tool of the host's.", {"type": "object", "properties": {}}, call)


def test_the_answer_is_recorded_and_returned(memory: Memory, room: Room) -> None:
    """A plain exchange is two messages, and its usage is noted."""
    with ScriptedModel([Reply("Hello, Ana.", usage=Usage(10, 3))]) as model:
        assert Agent(room, model).turn("Hello") == "Hello, Ana."
    assert _recorded(memory, room) == [("user", "Hello"), ("assistant", "Hello, Ana.")]
    assert room.usages == [Usage(10, 3)]


def test_every_step_is_durable_before_the_next_one_is_taken(memory: Memory, room: Room) -> None:
    """When the model is asked, everything up to then is in the record, and the tool has written."""
    seen: list[list[str]] = []

    def step(reply: Reply) -> Any:
        def answer(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
            seen.append([role for role, _ in _recorded(memory, room)])
            return reply

        return answer

    def host(arguments: Mapping[str, Any]) -> dict[str, Any]:
        seen.append([role for role, _ in _recorded(memory, room)])
        return {"success": True}

    two = Reply(tool_calls=(ToolCall("c1", "memory", SAVE), ToolCall("c2", "host", "{}")))
    with ScriptedModel([step(two), step(Reply("Saved."))]) as model:
        assert Agent(room, model, tools=[_tool("host", host)]).turn("Remember: CI runs on Debian 12.") == "Saved."
    assert seen == [["user"], ["user", "assistant", "tool"], ["user", "assistant", "tool", "tool"]]
    assert memory.entries() == ("CI runs on Debian 12.",)


def test_the_model_is_sent_the_prompt_the_record_and_all_tools(memory: Memory, room: Room) -> None:
    """The tools of the session come first, those of the host behind them, and neither changes in the turn."""
    extra = _tool("host", lambda arguments: {"success": True})
    with ScriptedModel([calling("host"), Reply("Done.")]) as model:
        Agent(room, model, tools=[extra]).turn("Do it")
    first, second = model.requests
    assert first.system == second.system == room.prompt
    assert [tool.name for tool in first.tools] == [*OWN_TOOLS, "host"]
    assert [tool.name for tool in second.tools] == [tool.name for tool in first.tools]
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-1]["tool_call_id"] == "c1"


def test_the_tools_stay_the_same_while_the_session_does(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that comes up late, or goes away, does not change what was cached; its calls still find it or fail."""
    model = ScriptedModel([Reply("One."), calling("late"), Reply("Two.")])
    agent = Agent(room, model)
    agent.turn("Hi")
    late = _tool("late", lambda arguments: {"success": True})
    monkeypatch.setattr(Room, "tools", property(lambda room: (*room.session.tools, late)))
    agent.turn("Hi")
    assert [len(request.tools) for request in model.requests] == [5, 5, 5]
    monkeypatch.setattr(Room, "id", "another")
    assert [tool.name for tool in agent.tools] == [*OWN_TOOLS, "late"]


def test_a_stream_shows_the_answer_without_what_was_recalled(memory: Memory, room: Room) -> None:
    """A fence that the model repeats is hidden, wherever the stream is cut; the answer returned is the same."""
    fenced = "Yes.\n<memory-context>\nsecret\n</memory-context>\nIt is Debian."
    for piece in (1, 3, 50):
        shown: list[str] = []
        with ScriptedModel([Reply(fenced)], piece=piece) as model:
            answer = Agent(room, model, on_text=shown.append).turn("Which system?")
        assert "".join(shown) == answer
        assert "secret" not in answer
        assert "It is Debian." in answer


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("nothing_like_it", "{}", "unavailable"),
        ("host", '{"a": ', "invalid"),
        ("host", "[1, 2]", "invalid"),
        ("raising", "{}", "error"),
    ],
)
def test_whatever_the_model_calls_it_gets_a_json_result(room: Room, name: str, arguments: str, reason: str) -> None:
    """Unknown tools, broken arguments and tools that raise are results that the model can read."""

    def broken(_: Mapping[str, Any]) -> dict[str, Any]:
        raise RuntimeError("no disk")

    tools = [_tool("host", lambda arguments: {"success": True}), _tool("raising", broken)]
    with ScriptedModel([calling(name, arguments), Reply("I see.")]) as model:
        assert Agent(room, model, tools=tools).turn("Try") == "I see."
    result = json.loads(model.requests[1].messages[-1]["content"])
    assert (result["success"], result["reason"]) == (False, reason)
    assert result["error"]


def test_a_call_without_arguments_is_a_call_with_none(room: Room) -> None:
    """Some models send an empty text."""
    got: list[Any] = []
    tool = _tool("host", _noting(got))
    with ScriptedModel([calling("host", ""), Reply("Done.")]) as model:
        Agent(room, model, tools=[tool]).turn("Try")
    assert got == [{}]


def test_a_result_that_is_too_long_keeps_its_beginning_and_end(room: Room) -> None:
    """One large answer does not fill the context, and the model sees that something is missing."""
    tool = _tool("host", lambda arguments: {"success": True, "text": "begin " + "x" * 9000 + " end"})
    with ScriptedModel([calling("host"), Reply("Done.")]) as model:
        Agent(room, model, tools=[tool], settings=AgentSettings(result_chars=900)).turn("Try")
    content = model.requests[1].messages[-1]["content"]
    assert len(content) < 1200
    assert "begin" in content and "end" in content
    assert json.loads(content)["cut"] is True


def test_a_model_that_never_stops_calling_is_told_to_answer(memory: Memory, room: Room) -> None:
    """After the last allowed step calls are refused once; then the turn ends, with an answer that says so."""
    calls: list[Any] = []
    tool = _tool("host", _noting(calls))
    steps = [calling("host", call_id=f"c{number}") for number in range(4)]
    with ScriptedModel(steps) as model:
        answer = Agent(room, model, tools=[tool], settings=AgentSettings(max_steps=2)).turn("Try")
    assert answer == TURN_LIMIT_ANSWER
    assert len(calls) == 2
    assert json.loads(model.requests[3].messages[-1]["content"])["reason"] == "limit"
    last = memory.sessions.get_messages(room.id)[-1]
    assert (last["content"], last["tool_calls"]) == (TURN_LIMIT_ANSWER, None)


def test_a_turn_has_no_more_time_than_it_is_given(room: Room) -> None:
    """Calls get what is left of the time; when nothing is left, the turn ends with an error."""
    model = ScriptedModel([Reply("Quick.")])
    Agent(room, model, settings=AgentSettings(turn_seconds=50.0)).turn("Hi")
    assert model.requests[0].deadline is not None and model.requests[0].deadline <= 50.0
    with pytest.raises(ModelUnreachableError, match="longer than"):
        Agent(room, ScriptedModel([]), settings=AgentSettings(turn_seconds=1e-9)).turn("Hi")


def test_an_interrupted_turn_keeps_what_was_recorded_and_is_not_done(memory: Memory, room: Room) -> None:
    """The next turn tells the model what was interrupted, and nothing of the record is changed for it."""

    def interrupt(*_: Any) -> Reply:
        raise KeyboardInterrupt

    def interrupted_tool(_: Mapping[str, Any]) -> dict[str, Any]:
        raise KeyboardInterrupt

    agent = Agent(room, ScriptedModel([calling("host")]), tools=[_tool("host", interrupted_tool)])
    with pytest.raises(KeyboardInterrupt):
        agent.turn("First")
    assert [role for role, _ in _recorded(memory, room)] == ["user", "assistant"]

    model = ScriptedModel([interrupt, Reply("Third, then.")])
    with pytest.raises(KeyboardInterrupt):
        Agent(room, model).turn("Second")
    assert Agent(room, model).turn("Third") == "Third, then."
    sent = [(each["role"], each["content"]) for each in model.requests[-1].messages]
    assert sent == [
        ("user", "First"),
        ("assistant", None),
        ("tool", INTERRUPTED_CALL),
        ("assistant", INTERRUPTED_ANSWER),
        ("user", "Second"),
        ("assistant", INTERRUPTED_ANSWER),
        ("user", "Third"),
    ]
    assert INTERRUPTED_ANSWER not in [content for _, content in _recorded(memory, room)]


def test_a_turn_is_handed_over_only_when_it_is_done(memory: Memory, room: Room) -> None:
    """Work after a turn begins when the answer is recorded, and never after an error."""
    after: list[list[str]] = []

    def note(agent: Agent) -> None:
        after.append([role for role, _ in _recorded(memory, room)])

    model = ScriptedModel([ModelOverloadedError("busy"), Reply("Now.")])
    agent = Agent(room, model, after_turn=note)
    with pytest.raises(ModelOverloadedError):
        agent.turn("Hi")
    assert after == []
    agent.turn("Again")
    assert after == [["user", "user", "assistant"]]


def test_a_context_that_is_too_long_is_compressed_once_and_asked_again(room: Room) -> None:
    """The second call gets its answer, and there is an event for it."""
    room = Room(room.session, compressions=[Compression(done=True, why="too long")])
    events: list[Event] = []
    with ScriptedModel([ContextTooLongError("8192 tokens"), Reply("Fits.")]) as model:
        assert Agent(room, model, on_event=events.append).turn("Hi") == "Fits."
    assert room.forced[0] is True
    assert [type(event) for event in events] == [ContextCompressed, ModelAnswered]


def test_a_context_that_cannot_be_compressed_is_an_error(room: Room) -> None:
    """Nothing is tried a third time."""
    for compressions in ([], [StorageError("disk full")], [Compression(done=True, why="too long")]):
        tried = Room(room.session, compressions=list(compressions))
        with pytest.raises(ContextTooLongError):
            Agent(tried, ScriptedModel([ContextTooLongError("long"), ContextTooLongError("still")])).turn("Hi")
        assert tried.forced == [True]


def test_what_fails_after_the_answer_does_not_spoil_it(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """The answer stands, and the failure is in the log."""

    def fail(agent: Agent) -> None:
        raise StorageError("no room for the review")

    with caplog.at_level(logging.ERROR):
        assert Agent(room, ScriptedModel([Reply("Fine.")]), after_turn=fail).turn("Hi") == "Fine."
    assert "no room for the review" in caplog.text


def test_an_empty_answer_is_an_error_and_not_an_answer(memory: Memory, room: Room) -> None:
    """The turn is not done; what the model stopped for is said."""
    with pytest.raises(ModelReplyError, match="length"):
        Agent(room, ScriptedModel([Reply("", finish_reason="length")])).turn("Hi")
    assert _recorded(memory, room) == [("user", "Hi")]


def test_every_step_is_an_event_in_order(room: Room) -> None:
    """Usage, call and result, each when it is there."""
    events: list[Event] = []
    with ScriptedModel([calling("memory", SAVE), Reply("Saved.")]) as model:
        agent = Agent(room, model, on_event=events.append)
        agent.turn("Remember it")
    assert [type(event) for event in events] == [ModelAnswered, ToolCalled, ToolReturned, ModelAnswered]
    returned = events[2]
    assert isinstance(returned, ToolReturned) and returned.result["success"] is True
    assert agent.usage == room.usages[0] + room.usages[1]
    assert agent.context_tokens == room.usages[1].input_tokens + room.usages[1].output_tokens


def test_structured_content_is_a_turn_too(memory: Memory, room: Room) -> None:
    """An image with a question is recorded and sent as it is."""
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    model = ScriptedModel([Reply("An image.")])
    Agent(room, model).turn(content)
    assert model.requests[0].messages[-1]["content"] == content
    assert _recorded(memory, room)[0] == ("user", content)
