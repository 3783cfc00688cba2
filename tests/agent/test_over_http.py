"""The agent with the real clients, over real HTTP: tools, streaming, interrupts, and a context that is too long."""

from collections.abc import Callable
from typing import Any

import pytest

from memoranda.agent.loop import Agent
from memoranda.agent.model_messages import INTERRUPTED_ANSWER, INTERRUPTED_CALL
from memoranda.agent.session_views import Compression
from memoranda.api.memory import Memory
from memoranda.errors import ContextTooLongError, ModelOverloadedError, ModelUnreachableError
from memoranda.models.anthropic.client import AnthropicMessages
from memoranda.models.model import ChatModel, Reply, ToolCall
from memoranda.models.openai import OpenAIChat
from memoranda.models.settings import ModelSettings
from memoranda.support.tool import Tool
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Cut, Refuse, Script, Step
from tests.agent.rooms import Room

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

Client = Callable[[ScriptedServer], ChatModel]
SAVE = '{"target": "memory", "action": "add", "content": "CI runs on Debian 12."}'


def _openai(server: ScriptedServer) -> ChatModel:
    return OpenAIChat(ModelSettings(name="any", base_url=server.openai_url, tries=1), "key")


def _anthropic(server: ScriptedServer) -> ChatModel:
    return AnthropicMessages(ModelSettings(name="claude-any", base_url=server.url, tries=1), "key")


both = pytest.mark.parametrize("client", [_openai, _anthropic])


@both
def test_a_turn_with_tools_is_streamed_and_recorded(memory: Memory, room: Room, client: Client) -> None:
    """Two calls at once, their results, and the answer, each where it belongs."""
    calls = (ToolCall("c1", "memory", SAVE), ToolCall("c2", "session_search", '{"query": "Debian"}'))
    shown: list[str] = []
    with ScriptedServer([Reply("One moment.", calls), Reply("It is saved.")]) as server:
        answer = Agent(room, client(server), on_text=shown.append).turn("Remember that CI runs on Debian 12.")
    assert answer == "It is saved."
    assert "".join(shown) == "One moment.It is saved."
    assert memory.entries() == ("CI runs on Debian 12.",)
    roles = [message["role"] for message in server.received[1].conversation[1]]
    assert roles == ["user", "assistant", "tool", "tool"]
    assert [each["role"] for each in memory.sessions.get_messages(room.id)] == [*roles, "assistant"]
    assert room.usages[1].cache_read_tokens > 0


@both
def test_a_conversation_with_interrupted_turns_is_one_that_services_accept(room: Room, client: Client) -> None:
    """Calls without results, and questions without answers, are closed in what is sent."""

    def interrupted(_: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    tool = Tool("stop", "Stops.", {"type": "object", "properties": {}}, interrupted)
    two = Reply("", (ToolCall("c1", "stop", "{}"), ToolCall("c2", "stop", "{}")))
    steps: list[Step | Script] = [two, Cut(Reply("Half " * 20), 5), Reply("Whole.")]
    shown: list[str] = []
    with ScriptedServer(steps) as server:
        agent = Agent(room, client(server), tools=[tool], on_text=shown.append)
        with pytest.raises(KeyboardInterrupt):
            agent.turn("First")
        with pytest.raises((ModelUnreachableError, ModelOverloadedError)):
            agent.turn("Second")
        assert agent.turn("Third") == "Whole."
    sent = server.received[2].conversation[1]
    assert [message["content"] for message in sent if message["role"] == "tool"] == [INTERRUPTED_CALL] * 2
    assert [message["content"] for message in sent if message["role"] == "user"] == ["First", "Second", "Third"]
    assert [message["content"] for message in sent].count(INTERRUPTED_ANSWER) == 2
    assert "".join(shown).startswith("Half")


@both
def test_a_context_that_a_service_refuses_is_compressed(room: Room, client: Client) -> None:
    """The service's own words are understood; what cannot be compressed is an error."""
    shorter = Room(room.session, compressions=[Compression(done=True, why="too long")])
    refusal = Refuse(400, "prompt is too long: 20 tokens > 10 maximum", "invalid_request_error")
    if client is _openai:
        refusal = Refuse(400, "This model's maximum context length is 10 tokens.", "context_length_exceeded")
    with ScriptedServer([refusal, Reply("Fits."), refusal]) as server:
        agent = Agent(shorter, client(server))
        assert agent.turn("Hello") == "Fits."
        with pytest.raises(ContextTooLongError):
            agent.turn("Hello")
    assert shorter.forced.count(True) == 2
