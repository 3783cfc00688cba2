"""Sessions of Google's ADK are conversations of the record, its state is kept by scope, and its memory is a search."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import memoranda
from tests.integrations.frameworks.earlier_conversation import ANSWER, QUESTION, UNRELATED, record_earlier_conversation
from tests.timing import GIVE_UP

pytest.importorskip("google.adk", reason="the package google-adk is not installed")
from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from memoranda.integrations.frameworks.google_adk import (
    SOURCE,
    MemorandaMemoryService,
    MemorandaSessionService,
    RecallTool,
    memory_tools,
)
from memoranda.memory.record.message_edits import StatefulAppend

_ANA: Any = {"app_name": "bakery", "user_id": "ana"}
_OVEN: Any = {**_ANA, "session_id": "oven"}


class _ScriptedModel(BaseLlm):
    """A model that gives its replies in their order and keeps what it was sent."""

    replies: list[Any]
    requests: list[str]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(str(llm_request.contents))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        part = types.Part(text=reply) if isinstance(reply, str) else types.Part(function_call=reply)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


@pytest.fixture
def service(memory: memoranda.Memory) -> MemorandaSessionService:
    """A session service on the home of the test."""
    return MemorandaSessionService(memory)


def _said(text: str, author: str = "user", **fields: Any) -> Event:
    role = "user" if author == "user" else "model"
    return Event(author=author, content=types.Content(role=role, parts=[types.Part(text=text)]), **fields)


def test_events_come_back_as_they_were_and_are_found(
    service: MemorandaSessionService, memory: memoranda.Memory
) -> None:
    """Calls, responses, bytes and actions included; the latest ones with a configuration."""
    parts = [types.Part(inline_data=types.Blob(data=b"\x00\xff", mime_type="image/png")), types.Part(text="Look.")]
    call = types.Part(function_call=types.FunctionCall(id="c1", name="read", args={"a": 1}))
    response = types.FunctionResponse(id="c1", name="read", response={"result": "The thermostat broke."})
    events = [
        Event(author="user", timestamp=10.5, content=types.Content(role="user", parts=parts)),
        Event(author="baker", timestamp=11.5, content=types.Content(role="model", parts=[call])),
        Event(
            author="baker",
            timestamp=12.5,
            content=types.Content(role="user", parts=[types.Part(function_response=response)]),
        ),
        _said("It is cold.", "baker", timestamp=13.5, actions=EventActions(transfer_to_agent="helper")),
    ]

    async def main() -> None:
        assert await service.get_session(**_OVEN) is None
        session = await service.create_session(**_OVEN)
        for event in events:
            await service.append_event(session, event)
        await service.append_event(session, _said("half", "baker", partial=True))
        found = await service.get_session(**_OVEN)
        assert found is not None and found.events == events and found == session
        latest = await service.get_session(**_OVEN, config=GetSessionConfig(num_recent_events=1))
        later = await service.get_session(**_OVEN, config=GetSessionConfig(after_timestamp=12.0))
        none = await service.get_session(**_OVEN, config=GetSessionConfig(num_recent_events=0))
        assert latest is not None and later is not None and none is not None
        assert (latest.events, later.events, none.events) == (events[3:], events[2:], [])

    asyncio.run(main())
    ana = memory.for_user("ana")
    roles = [each["role"] for each in ana.sessions.get_messages(f"{SOURCE}@ana:bakery/oven")]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert ana.search("thermostat broke")["results"][0]["source"] == SOURCE
    assert memory.for_user("bob").search("thermostat broke")["count"] == 0


def test_state_is_shared_by_its_prefix(service: MemorandaSessionService) -> None:
    """State of the app with all, of the user with the user's sessions; that of an invocation is not stored."""

    async def main() -> None:
        session = await service.create_session(**_OVEN, state={"app:a": 1, "user:u": 2, "own": 3, "temp:t": 4})
        delta = {"app:a": 5, "user:v": [6], "own": None, "temp:t": 7}
        await service.append_event(session, _said("Hi.", actions=EventActions(state_delta=delta)))
        assert session.state["temp:t"] == 7
        found = await service.get_session(**_OVEN)
        other = await service.create_session(**_ANA, session_id="mixer")
        bob = await service.create_session(app_name="bakery", user_id="bob")
        assert found is not None and found.state == {"app:a": 5, "user:u": 2, "user:v": [6], "own": None}
        assert other.state == {"app:a": 5, "user:u": 2, "user:v": [6]} and bob.state == {"app:a": 5}
        assert (await service.create_session(app_name="mill", user_id="ana")).state == {}
        assert await service.get_user_state(**_ANA) == {"u": 2, "v": [6]}

    asyncio.run(main())


def test_sessions_are_listed_and_deleted_by_app_and_user(service: MemorandaSessionService) -> None:
    """The latest last; all users when none is named."""

    async def main() -> None:
        assert (await service.list_sessions(app_name="bakery")).sessions == []
        first = await service.create_session(**_OVEN)
        await service.create_session(**_ANA, session_id="mixer")
        await service.create_session(app_name="bakery", user_id="bob", session_id="oven")
        await service.create_session(app_name="mill", user_id="ana", session_id="oven")
        await service.append_event(first, _said("Hi."))
        of_ana = (await service.list_sessions(**_ANA)).sessions
        assert [each.id for each in of_ana] == ["mixer", "oven"] and of_ana[1].events == []
        everyone = (await service.list_sessions(app_name="bakery")).sessions
        assert {(each.user_id, each.id) for each in everyone} == {("ana", "oven"), ("ana", "mixer"), ("bob", "oven")}
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**_OVEN)
        await service.delete_session(**_OVEN)
        await service.delete_session(**_OVEN)
        assert await service.get_session(**_OVEN) is None
        with pytest.raises(SessionNotFoundError):
            await service.append_event(first, _said("Too late."))

    asyncio.run(main())


def test_an_outdated_copy_of_a_session_is_refused(service: MemorandaSessionService) -> None:
    """So no event is recorded as an answer to something else; the copy that is up to date continues."""

    async def main() -> None:
        session = await service.create_session(**_OVEN)
        copy = await service.get_session(**_OVEN)
        assert copy is not None
        await service.append_event(session, _said("One."))
        with pytest.raises(StaleSessionError):
            await service.append_event(copy, _said("Two."))
        await service.append_event(session, _said("Three."))
        found = await service.get_session(**_OVEN)
        assert found is not None and len(found.events) == 2

    asyncio.run(main())


def test_of_two_events_at_once_one_is_refused(
    memory: memoranda.Memory, service: MemorandaSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of a copy and the append are one step, and a refused event changes no state of the app or the user."""
    append = StatefulAppend.append_with_state

    async def main() -> None:
        session = await service.create_session(**_OVEN, state={"app:a": 1, "user:u": 2, "own": 3})

        def append_after_another(part: StatefulAppend, session_id: str, *args: Any, **options: Any) -> list[int]:
            memory.for_user("ana").sessions.append_message(session_id, "user", "Between.")
            return append(part, session_id, *args, **options)

        delta = {"app:a": 5, "user:u": 6, "own": 7}
        with monkeypatch.context() as patch, pytest.raises(StaleSessionError):
            patch.setattr(StatefulAppend, "append_with_state", append_after_another)
            await service.append_event(session, _said("Late.", actions=EventActions(state_delta=delta)))
        found = await service.get_session(**_OVEN)
        assert found is not None and found.state == {"app:a": 1, "user:u": 2, "own": 3}

    asyncio.run(main())
    stored = memory.for_user("ana").sessions.get_messages(f"{SOURCE}@ana:bakery/oven")
    assert [message["content"] for message in stored] == ["Between."]


@pytest.fixture
def home(memory: memoranda.Memory) -> memoranda.Memory:
    """A home in which Ana had a conversation before."""
    record_earlier_conversation(memory.for_user("ana"))
    return memory


def _runner(memory: memoranda.Memory, *replies: Any) -> tuple[Runner, _ScriptedModel]:
    model = _ScriptedModel(model="scripted", replies=list(replies), requests=[])
    tools = [*memory_tools(memory), RecallTool(memory, seconds=GIVE_UP)]
    agent = LlmAgent(name="baker", model=model, tools=tools)
    services: Any = {
        "session_service": MemorandaSessionService(memory),
        "memory_service": MemorandaMemoryService(memory),
    }
    return Runner(app_name="bakery", agent=agent, auto_create_session=True, **services), model


async def _ask(runner: Runner, text: str, session: str = "oven") -> None:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    async for _ in runner.run_async(user_id="ana", session_id=session, new_message=content):
        pass


# The framework builds its schemas at the first run.
@pytest.mark.slow
def test_an_agent_continues_its_conversation_with_memory(home: memoranda.Memory) -> None:
    """It recalls for its user, keeps the message as it was, saves with the tool, and loses nothing when it fails."""
    fact = {"action": "add", "target": "memory", "content": "The oven is old."}

    async def main() -> None:
        call = types.FunctionCall(id="c1", name="memory", args=fact)
        runner, model = _runner(home, call, "Saved.", "Waves.", RuntimeError("no connection"))
        await _ask(runner, QUESTION)
        await _ask(runner, UNRELATED)
        assert [request.count(ANSWER) for request in model.requests] == [1, 1, 0]
        with pytest.raises(RuntimeError):
            await _ask(runner, "Is the mixer broken?")
        other, later = _runner(home, "Yes.")
        await _ask(other, "Still?")
        assert "Is the mixer broken?" in later.requests[0] and "Saved." in later.requests[0]

    asyncio.run(main())
    ana = home.for_user("ana")
    assert ana.entries("memory") == ("The oven is old.",) and home.entries("memory") == ()
    assert ANSWER not in str(ana.sessions.get_messages(f"{SOURCE}@ana:bakery/oven"))


def test_memory_finds_what_the_user_said_in_the_app(memory: memoranda.Memory) -> None:
    """Also events of another session service, once; nothing of other users or apps."""
    service, found_in = MemorandaMemoryService(memory), "The thermostat of the oven broke in May."

    async def main() -> None:
        assert (await service.search_memory(**_ANA, query="thermostat")).memories == []
        events = [_said(found_in), _said("Replace it.", "baker")]
        for _ in range(2):
            await service.add_events_to_memory(**_ANA, events=events, session_id="elsewhere")
        entries = (await service.search_memory(**_ANA, query="thermostat oven")).memories
        assert [entry.content.parts[0].text for entry in entries] == [found_in, "Replace it."]
        assert entries[0].custom_metadata == {"session_id": "elsewhere"}
        for other in ({"app_name": "bakery", "user_id": "bob"}, {"app_name": "mill", "user_id": "ana"}):
            assert (await service.search_memory(**other, query="thermostat oven")).memories == []

    asyncio.run(main())
    with pytest.raises(ValueError, match="ana"):
        MemorandaSessionService(memory.for_user("ana"))


def test_a_call_that_was_interrupted_has_a_response_that_says_so(service: MemorandaSessionService) -> None:
    """Gemini refuses a call without one; a long-running tool may still answer."""
    calls = [types.Part(function_call=types.FunctionCall(id=each, name="read", args={})) for each in ("c1", "c2")]

    async def main() -> list[Event]:
        session = await service.create_session(**_OVEN)
        await service.append_event(session, _said("Hello"))
        content = types.Content(role="model", parts=calls)
        await service.append_event(session, Event(author="baker", content=content, long_running_tool_ids={"c2"}))
        await service.append_event(session, _said("Are you there?"))
        loaded = await service.get_session(**_OVEN)
        assert loaded is not None
        await service.append_event(loaded, _said("Hm."))
        return list(loaded.events)

    events = asyncio.run(main())
    assert [len(event.get_function_responses()) for event in events] == [0, 0, 1, 0, 0]
    assert events[2].get_function_responses()[0].id == "c1"
