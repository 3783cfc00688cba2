"""Runs of Pydantic AI are conversations of the record, with memory as a capability of the agent."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import memoranda
from tests.integrations.frameworks.earlier_conversation import ANSWER, QUESTION, UNRELATED, record_earlier_conversation
from tests.timing import GIVE_UP

pytest.importorskip("pydantic_ai", reason="the package pydantic-ai-slim is not installed")
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memoranda.integrations.frameworks.pydantic_ai import SOURCE, MemorandaCapability, load_history


class _Script:
    """Replies of a model in their order, and what it was sent."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.requests: list[str] = []
        self.instructions: list[str | None] = []
        self.model = FunctionModel(self._respond, stream_function=self._stream)

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> Any:
        self.requests.append(str(messages))
        self.instructions.append(info.instructions)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = self._next(messages, info)
        return ModelResponse([TextPart(reply) if isinstance(reply, str) else reply])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield self._next(messages, info)


def _agent(memory: memoranda.Memory, script: _Script) -> Agent[Any, str]:
    return Agent(script.model, instructions="You bake.", capabilities=[MemorandaCapability(memory, seconds=GIVE_UP)])


def _stored(memory: memoranda.Memory) -> list[Any]:
    return memory.sessions.get_messages(f"{SOURCE}:oven")


def test_a_conversation_is_continued_with_its_messages_as_they_were(memory: memoranda.Memory) -> None:
    """Calls, results and images included; the memory tool saves, and another user has another conversation."""
    fact = {"action": "add", "target": "memory", "content": "The oven is old."}
    script = _Script(ToolCallPart("memory", fact, "c1"), "Saved.", "Since May.")

    async def main() -> None:
        agent, prompt = (
            _agent(memory, script),
            ["Remember this oven.", BinaryContent(b"\x00\xff", media_type="image/png")],
        )
        first = await agent.run(prompt, conversation_id="oven")
        history = await load_history(memory, "oven")
        assert _plain(history) == _plain(first.all_messages())
        second = await agent.run("Since when?", conversation_id="oven", message_history=history)
        assert _plain(await load_history(memory, "oven")) == _plain(second.all_messages())
        assert await load_history(memory.for_user("ana"), "oven") == []

    asyncio.run(main())
    assert memory.entries("memory") == ("The oven is old.",)
    assert [each["role"] for each in _stored(memory)] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert memory.search("Remember this oven")["results"][0]["source"] == SOURCE


def _plain(messages: list[ModelMessage]) -> list[Any]:
    """The messages as JSON, without the instructions, which are not part of the history."""
    return [{**each, "instructions": None} for each in ModelMessagesTypeAdapter.dump_python(messages, mode="json")]


def test_what_the_user_says_is_recorded_before_the_model_answers(memory: memoranda.Memory) -> None:
    """A model or a tool that fails does not lose what was said before; a stream is recorded when it ends."""
    script = _Script(RuntimeError("no connection"), ToolCallPart("check", {}, "c1"), "Yes.")

    async def main() -> None:
        agent = _agent(memory, script)

        def check() -> str:
            raise OSError("a cable is loose")

        agent.tool_plain(check)
        with pytest.raises(RuntimeError):
            await agent.run("Is the mixer broken?", conversation_id="oven")
        assert [each["role"] for each in _stored(memory)] == ["user"]
        with pytest.raises(OSError, match="cable"):
            await agent.run("Check it.", conversation_id="oven")
        assert [each["role"] for each in _stored(memory)] == ["user", "user", "assistant"]
        async with agent.run_stream("Still?", conversation_id="oven") as stream:
            assert await stream.get_output() == "Yes."

    asyncio.run(main())
    assert [each["role"] for each in _stored(memory)] == ["user", "user", "assistant", "user", "assistant"]


def test_recall_and_curated_memory_are_read_by_the_model_and_not_kept(memory: memoranda.Memory) -> None:
    """The instructions of a conversation stay the same when memory changes; a new one gets the new ones."""
    record_earlier_conversation(memory)
    memory.remember("The bakery opens at six.")
    script = _Script("Done.", "Waves.", "New.")

    async def main() -> None:
        agent = _agent(memory, script)
        first = await agent.run(QUESTION, conversation_id="oven")
        assert ANSWER not in str(first.all_messages())
        memory.remember("The bakery closes at noon.")
        await agent.run(UNRELATED, conversation_id="oven", message_history=first.all_messages())
        await agent.run("Hello there, new conversation.", conversation_id="other")

    asyncio.run(main())
    assert [request.count(ANSWER) for request in script.requests] == [1, 0, 0]
    assert script.instructions[0] == script.instructions[1] and "opens at six" in str(script.instructions[0])
    assert "closes at noon" in str(script.instructions[2])
    assert ANSWER not in str(_stored(memory))


def test_a_call_that_was_interrupted_has_a_result_that_says_so(memory: memoranda.Memory) -> None:
    """The next prompt is not refused; with `deferred`, the call still waits for the result of the program."""
    script = _Script(ToolCallPart("break", {}, "c1"), "Here I am.")

    async def main() -> None:
        agent = _agent(memory, script)

        @agent.tool_plain(name="break")
        def fail() -> str:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await agent.run("Hello", conversation_id="oven")
        assert isinstance((await load_history(memory, "oven", deferred=True))[-1], ModelResponse)
        history = await load_history(memory, "oven")
        await agent.run("Are you there?", conversation_id="oven", message_history=history)

    asyncio.run(main())
    assert "was interrupted before this call had a result" in script.requests[-1]
