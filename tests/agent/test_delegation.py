"""Delegated work: a conversation of its own, memory to read, a scratch, limits, and a result that comes back."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from memoranda.agent.delegation import Delegation
from memoranda.agent.loop import Agent
from memoranda.agent.session_views import AgentSession
from memoranda.agent.settings import DelegationSettings
from memoranda.api.memory import Memory
from memoranda.errors import ModelOverloadedError
from memoranda.models.model import Reply
from memoranda.testing.scripted.model import ScriptedModel
from tests.agent.rooms import Room, calling

pytestmark = pytest.mark.slow

TASK = json.dumps({"task": "Count the tests.", "context": "They are in tests/."})


@pytest.fixture
def begin(memory: Memory, room: Room) -> Callable[[str], AbstractContextManager[AgentSession]]:
    # A session has a row, to which others can be linked, when something was said in it.
    room.session.record("system", "begun")

    def begin_child(parent_id: str) -> AbstractContextManager[AgentSession]:
        return memory.session(source="subagent", parent=parent_id)

    return begin_child


def test_a_delegate_works_in_a_conversation_of_its_own_and_its_result_comes_back(
    memory: Memory, room: Room, begin: Any
) -> None:
    """The parent sees only the result; the child's session is linked to it, and `on_result` receives it."""
    heard: list[tuple[str, str, str]] = []
    model = ScriptedModel([calling("delegate_task", TASK), Reply("There are 12."), Reply("Twelve tests.")])
    delegation = Delegation(room, model, begin, on_result=lambda *about: heard.append(about))
    assert Agent(room, model, tools=delegation.definitions()).turn("How many tests?") == "Twelve tests."
    model.check()

    child_id = heard[0][2]
    assert heard == [("Count the tests.", "There are 12.", child_id)]
    child = memory.sessions.get_session(child_id)
    assert child is not None
    assert (child["parent_session_id"], child["relation"], child["end_reason"]) == (
        room.id, "delegation", "session_end",
    )  # fmt: skip
    said = [each["content"] for each in memory.sessions.get_messages(child_id)]
    assert said == ["Count the tests.\n\nWhat you should know:\nThey are in tests/.", "There are 12."]
    result = json.loads(model.requests[2].messages[-1]["content"])
    assert result == {"success": True, "result": "There are 12.", "session_id": child_id}


def test_a_delegate_reads_memory_and_writes_only_to_its_scratch(memory: Memory, room: Room, begin: Any) -> None:
    """It has the prompt with the memory in it and no tool that changes any; calling one anyway changes nothing."""
    memory.remember("Project uses pytest.")
    save = json.dumps({"target": "memory", "action": "add", "content": "I was here."})
    steps = [
        calling("memory", save),
        calling("scratch", '{"action": "write", "note": "12 so far"}', call_id="c2"),
        calling("scratch", '{"action": "read"}', call_id="c3"),
        Reply("Twelve."),
    ]
    with ScriptedModel(steps) as model:
        result = Delegation(room, model, begin).call(json.loads(TASK))
    assert result["result"] == "Twelve."
    assert "Project uses pytest." in model.requests[0].system
    assert [tool.name for tool in model.requests[0].tools] == ["session_search", "skills_list", "skill_view", "scratch"]
    refused, _, notes = (json.loads(request.messages[-1]["content"]) for request in model.requests[1:])
    assert refused["reason"] == "unavailable"
    assert notes["notes"] == ["12 so far"]
    assert memory.entries() == ("Project uses pytest.",)


def test_delegation_goes_no_deeper_than_it_may(memory: Memory, room: Room, begin: Any) -> None:
    """At the deepest level the tool is not offered; each level is the child of the one above."""
    heard: list[str] = []
    settings = DelegationSettings(max_depth=2)
    with ScriptedModel([calling("delegate_task", TASK), Reply("Below."), Reply("Above.")]) as model:
        delegation = Delegation(room, model, begin, settings=settings, on_result=lambda *it: heard.append(it[2]))
        assert delegation.call({"task": "Split it."})["result"] == "Above."
    offered = [[tool.name for tool in request.tools] for request in model.requests]
    assert ["delegate_task" in names for names in offered] == [True, False, True]
    deepest, middle = heard
    assert [each["id"] for each in memory.sessions.get_ancestors(deepest)] == [deepest, middle, room.id]
    assert Delegation(room, model, begin, settings=DelegationSettings(max_depth=0)).definitions() == ()


def test_a_delegate_that_fails_is_a_result_and_not_an_error(memory: Memory, room: Room, begin: Any) -> None:
    """The parent reads why; `on_result` is not called."""
    heard: list[Any] = []
    model = ScriptedModel([ModelOverloadedError("The service is busy.")])
    result = Delegation(room, model, begin, on_result=lambda *about: heard.append(about)).call({"task": "Try."})
    assert (result["success"], heard) == (False, [])
    assert "busy" in result["error"]
    assert memory.sessions.get_session(result["session_id"]) is not None


@pytest.mark.parametrize("arguments", [{}, {"task": " "}, {"task": 3}, {"task": "x", "context": [1]}])
def test_a_task_must_be_said_in_words(room: Room, begin: Any, arguments: dict[str, Any]) -> None:
    """Anything else is refused before a session is begun."""
    assert Delegation(room, ScriptedModel([]), begin).call(arguments)["reason"] == "invalid"


def test_an_interrupt_reaches_through_a_delegate(memory: Memory, room: Room, begin: Any) -> None:
    """Both conversations keep what was recorded, and neither turn is done."""

    def interrupt(*_: Any) -> Reply:
        raise KeyboardInterrupt

    model = ScriptedModel([calling("delegate_task", TASK), interrupt])
    agent = Agent(room, model, tools=Delegation(room, model, begin).definitions())
    with pytest.raises(KeyboardInterrupt):
        agent.turn("How many?")
    assert [each["role"] for each in memory.sessions.get_messages(room.id)] == ["system", "user", "assistant"]
    (child,) = [each for each in memory.sessions.get_descendants(room.id) if each["relation"] == "delegation"]
    assert [each["role"] for each in memory.sessions.get_messages(child["id"])] == ["user"]


def test_an_agent_of_a_home_can_delegate(memory: Memory) -> None:
    """Without any wiring of one's own; the delegate's session is linked to the one that asked."""
    model = ScriptedModel([calling("delegate_task", TASK), Reply("There are 12."), Reply("Twelve tests.")])
    agent = memory.agent(model)
    assert agent.turn("How many tests?") == "Twelve tests."
    model.check()
    family = memory.sessions.get_descendants(agent.session.id)
    assert [each["relation"] for each in family] == [None, "delegation"]
