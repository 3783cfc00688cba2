"""Sessions of Strands are conversations of the record: durable, continued by another agent, and found by search."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

import memoranda
from tests.integrations.frameworks.earlier_conversation import ANSWER, QUESTION, UNRELATED, record_earlier_conversation
from tests.timing import GIVE_UP

pytest.importorskip("strands", reason="the package strands-agents is not installed")
from strands import Agent
from strands.models import Model
from strands.session import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from memoranda.integrations.frameworks.strands import SOURCE, MemorandaRecall, MemorandaRepository, memory_tools


class _ScriptedModel(Model):
    """A model that gives its replies in their order and keeps what it was sent; a reply is a text or a tool call."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.requests: list[str] = []

    def update_config(self, **model_config: Any) -> None:
        raise NotImplementedError

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.requests.append(str(messages))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(reply, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": reply}}}
        else:
            name, arguments = reply
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c1", "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(reply, str) else "tool_use"}}


def _agent(memory: memoranda.Memory, model: _ScriptedModel, session: str = "oven", **options: Any) -> Agent:
    manager = RepositorySessionManager(session, MemorandaRepository(memory))
    return Agent(model, agent_id="baker", session_manager=manager, callback_handler=None, **options)


def _message(number: int, content: Any, role: str = "user") -> SessionMessage:
    return SessionMessage(cast("Any", {"role": role, "content": content}), number)


@pytest.fixture
def repository(memory: memoranda.Memory) -> MemorandaRepository:
    """A repository with one session and one agent."""
    repository = MemorandaRepository(memory)
    repository.create_session(Session("oven", SessionType.AGENT))
    repository.create_agent("oven", SessionAgent("baker", {"n": 1}, {}))
    return repository


def test_sessions_agents_and_messages_come_back_as_they_were(repository: MemorandaRepository) -> None:
    """Bytes and tool results included; what is missing is None or raises, and the times of creation stay."""
    assert repository.read_session("none") is None and repository.read_agent("oven", "none") is None
    session, agent = repository.read_session("oven"), repository.read_agent("oven", "baker")
    assert session is not None and session.session_id == "oven"
    assert agent is not None and agent.state == {"n": 1}
    messages = [
        _message(0, [{"text": "Look."}, {"image": {"format": "png", "source": {"bytes": b"\x00\xff"}}}]),
        _message(1, [{"toolUse": {"toolUseId": "c1", "name": "read", "input": {"a": 1}}}], "assistant"),
        _message(2, [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "cold"}]}}]),
    ]
    for message in [*messages, messages[0]]:
        repository.create_message("oven", "baker", message)
    assert repository.list_messages("oven", "baker") == messages
    assert repository.list_messages("oven", "baker", limit=1, offset=1) == messages[1:2]
    assert repository.read_message("oven", "baker", 2) == messages[2]
    assert repository.read_message("oven", "baker", 9) is None
    repository.update_agent("oven", SessionAgent("baker", {"n": 2}, {}, created_at="later"))
    updated = repository.read_agent("oven", "baker")
    assert updated is not None and (updated.state, updated.created_at) == ({"n": 2}, agent.created_at)
    with pytest.raises(SessionException):
        repository.create_session(Session("oven", SessionType.AGENT))
    with pytest.raises(SessionException):
        repository.create_message("oven", "none", messages[0])
    with pytest.raises(SessionException):
        repository.list_messages("none", "baker")


def test_a_redacted_message_is_found_by_its_new_text_only(
    repository: MemorandaRepository, memory: memoranda.Memory
) -> None:
    """The others stay, and a message that does not exist cannot be redacted."""
    for number, text in enumerate(("The code is swordfish.", "I cannot say.")):
        repository.create_message("oven", "baker", _message(number, [{"text": text}]))
    redacted = _message(0, [{"text": "The code is swordfish."}])
    redacted.redact_message = cast("Any", {"role": "user", "content": [{"text": "Blocked by a guardrail."}]})
    repository.update_message("oven", "baker", redacted)
    found = repository.list_messages("oven", "baker")
    assert [each.to_message()["content"][0]["text"] for each in found] == ["Blocked by a guardrail.", "I cannot say."]
    assert memory.search("swordfish")["count"] == 0 and memory.search("guardrail")["count"] == 1
    with pytest.raises(SessionException):
        repository.update_message("oven", "baker", _message(7, []))


def test_a_deleted_session_is_gone_with_its_agents(repository: MemorandaRepository, memory: memoranda.Memory) -> None:
    """Another user does not see it before."""
    repository.create_message("oven", "baker", _message(0, [{"text": "The oven is cold."}]))
    assert MemorandaRepository(memory.for_user("ana")).read_session("oven") is None
    repository.delete_session("oven")
    assert repository.read_session("oven") is None and memory.search("oven cold")["count"] == 0
    with pytest.raises(SessionException):
        repository.delete_session("oven")


def test_another_agent_continues_the_conversation(memory: memoranda.Memory) -> None:
    """With tool calls, and the user's message is recorded when the model fails; the tool saves what it should."""
    fact = '{"action": "add", "target": "memory", "content": "The oven is old."}'
    first = _agent(memory, _ScriptedModel(("memory", fact), "Saved."), tools=memory_tools(memory))
    first("Remember that the oven is old.")
    assert memory.entries("memory") == ("The oven is old.",)
    model = _ScriptedModel(RuntimeError("no connection"))
    with pytest.raises(RuntimeError):
        _agent(memory, model)("And the mixer?")
    assert "Remember that the oven is old." in model.requests[0] and "toolResult" in model.requests[0]
    assert memory.search("mixer")["results"][0]["source"] == SOURCE
    roles = [each["role"] for each in memory.sessions.get_messages(f"{SOURCE}:oven/baker")]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


def test_recall_is_read_by_the_model_and_not_kept(memory: memoranda.Memory) -> None:
    """The agent and the record have the user's message as it was, and its own session is not recalled."""
    record_earlier_conversation(memory)
    model = _ScriptedModel("Done.", "Waves.", "Again.")
    agent = _agent(memory, model, hooks=[MemorandaRecall(memory, seconds=GIVE_UP)])
    for question in (QUESTION, UNRELATED, QUESTION):
        asyncio.run(agent.invoke_async(question))
    assert [request.count(ANSWER) for request in model.requests] == [1, 0, 1]
    assert ANSWER not in str(agent.messages)
    assert ANSWER not in str(memory.sessions.get_messages(f"{SOURCE}:oven/baker"))
