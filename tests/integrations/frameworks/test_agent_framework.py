"""Sessions of the Agent Framework are conversations of the record, with memory as context of each run."""

import asyncio
from typing import Any

import pytest

import memoranda
from tests.integrations.frameworks.earlier_conversation import ANSWER, QUESTION, UNRELATED, record_earlier_conversation
from tests.timing import GIVE_UP

pytest.importorskip("agent_framework", reason="the package agent-framework-core is not installed")
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

from memoranda.integrations.frameworks.agent_framework import SOURCE, MemorandaContext, MemorandaHistory


class _ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc,type-arg]
    """A chat client that gives its replies in their order and keeps what it was sent."""

    def __init__(self, *replies: Any) -> None:
        super().__init__()
        self.replies = list(replies)
        self.requests: list[str] = []
        self.instructions: list[str] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        self.requests.append(
            "\n".join(f"{each.role}: {[part.to_dict() for part in each.contents]}" for each in messages)
        )
        self.instructions.append(str(options.get("instructions")))
        reply = self.replies.pop(0)

        async def respond() -> ChatResponse[Any]:
            if isinstance(reply, Exception):
                raise reply
            return ChatResponse(messages=Message("assistant", [reply]))

        async def updates() -> Any:
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(reply)])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else respond()


def _agent(memory: memoranda.Memory, client: _ScriptedClient, **options: Any) -> Agent[Any]:
    providers = [MemorandaHistory(memory), MemorandaContext(memory, seconds=GIVE_UP)]
    return Agent(client, instructions="You bake.", context_providers=providers, **options)


def _stored(memory: memoranda.Memory, session: str = "oven") -> list[Any]:
    return memory.sessions.get_messages(f"{SOURCE}:{session}")


def test_messages_come_back_as_they_were(memory: memoranda.Memory) -> None:
    """With calls, results and data; results are found, and another user has a session of the same name."""
    messages = [
        Message("user", ["Is it cold?", Content.from_data(b"\x00", "image/png")], message_id="m1"),
        Message("assistant", [Content.from_function_call("c1", "read", arguments='{"a": 1}')]),
        Message("tool", [Content.from_function_result("c1", result="The thermostat broke.")]),
        Message("assistant", ["It is cold."], additional_properties={"note": 1}),
    ]
    history = MemorandaHistory(memory)

    async def main() -> None:
        assert await history.get_messages("oven") == []
        await history.save_messages("oven", messages)
        found = await history.get_messages("oven")
        assert [each.to_dict() for each in found] == [each.to_dict() for each in messages]
        assert await MemorandaHistory(memory.for_user("ana")).get_messages("oven") == []

    asyncio.run(main())
    assert [each["role"] for each in _stored(memory)] == ["user", "assistant", "tool", "assistant"]
    assert memory.search("thermostat")["results"][0]["source"] == SOURCE


@pytest.mark.parametrize("per_call", [False, True])
def test_an_agent_continues_its_conversation_and_saves_with_a_tool(memory: memoranda.Memory, per_call: bool) -> None:
    """Another agent of another process would get the same history; each message is recorded once."""
    fact = '{"action": "add", "target": "memory", "content": "The oven is old."}'
    call = Content.from_function_call("c1", "memory", arguments=fact)
    options: Any = {"require_per_service_call_history_persistence": True} if per_call else {}

    async def main() -> None:
        agent = _agent(memory, _ScriptedClient(call, "Saved."), **options)
        answer = await agent.run("Remember that the oven is old.", session=agent.create_session(session_id="oven"))
        assert answer.text == "Saved."
        client = _ScriptedClient("Since May.")
        agent = _agent(memory, client, **options)
        await agent.run("Since when?", session=agent.create_session(session_id="oven"))
        assert client.requests[0].count("Remember that the oven is old.") == 1
        assert "function_result" in client.requests[0]

    asyncio.run(main())
    assert memory.entries("memory") == ("The oven is old.",)
    roles = [each["role"] for each in _stored(memory)]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


def test_what_the_user_says_is_recorded_before_the_model_answers(memory: memoranda.Memory) -> None:
    """A model that fails does not lose it; a stream is recorded when it ends."""

    async def main() -> None:
        agent = _agent(memory, _ScriptedClient(RuntimeError("no connection"), "Yes."))
        with pytest.raises(RuntimeError):
            await agent.run("Is the mixer broken?", session=agent.create_session(session_id="oven"))
        assert [each["role"] for each in _stored(memory)] == ["user"]
        async for _ in agent.run("Still?", session=agent.create_session(session_id="oven"), stream=True):
            pass

    asyncio.run(main())
    assert [each["role"] for each in _stored(memory)] == ["user", "user", "assistant"]


def test_recall_and_curated_memory_are_context_and_are_not_kept(memory: memoranda.Memory) -> None:
    """The instructions of a session stay the same when memory changes; a new session gets the new ones."""
    record_earlier_conversation(memory)
    memory.remember("The bakery opens at six.")
    client = _ScriptedClient("Done.", "Waves.", "New.")

    async def main() -> None:
        agent = _agent(memory, client)
        session = agent.create_session(session_id="oven")
        await agent.run(QUESTION, session=session)
        memory.remember("The bakery closes at noon.")
        await agent.run(UNRELATED, session=session)
        await agent.run("Hello there, new session.", session=agent.create_session(session_id="other"))

    asyncio.run(main())
    assert [request.count(ANSWER) for request in client.requests] == [1, 0, 0]
    assert client.requests[0].index(ANSWER) < client.requests[0].index(QUESTION)
    assert client.instructions[0] == client.instructions[1] and "opens at six" in client.instructions[0]
    assert "closes at noon" in client.instructions[2]
    assert ANSWER not in str(_stored(memory))


def test_a_call_that_was_interrupted_has_a_result_that_says_so(memory: memoranda.Memory) -> None:
    """Chat services refuse a call without one; calls that have results keep them."""
    calls = [Content.from_function_call(each, "read", arguments="{}") for each in ("a", "b")]
    said = [
        Message("user", ["Hello"]),
        Message("assistant", calls),
        Message("tool", [Content.from_function_result("b", result="{}")]),
        Message("user", ["Are you there?"]),
    ]

    async def main() -> list[Message]:
        history = MemorandaHistory(memory)
        await history.save_messages("oven", said)
        return await history.get_messages("oven")

    found = asyncio.run(main())
    assert [each.role for each in found] == ["user", "assistant", "tool", "tool", "user"]
    assert [each.contents[0].call_id for each in found[2:4]] == ["b", "a"]
