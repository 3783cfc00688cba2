"""What a reply is: values, and the message that is recorded of it."""

from memoranda.models.anthropic.client import AnthropicMessages
from memoranda.models.model import ChatModel, Reply, ToolCall, Usage
from memoranda.models.openai import OpenAIChat
from memoranda.models.settings import ModelSettings
from memoranda.testing.scripted.model import ScriptedModel


def test_a_reply_is_recorded_as_chat_apis_take_it() -> None:
    """Text, calls and reasoning, and nothing that is empty."""
    reply = Reply("", (ToolCall("c1", "memory", "{}"),), finish_reason="tool_calls", reasoning="hm")
    assert reply.message() == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "memory", "arguments": "{}"}}],
        "reasoning": "hm",
        "finish_reason": "tool_calls",
    }
    assert Reply("Hi").message() == {"role": "assistant", "content": "Hi", "finish_reason": "stop"}


def test_usage_adds_up() -> None:
    """Field by field."""
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)


def test_every_model_is_a_chat_model() -> None:
    """The type checker sees to it that these fit the protocol."""
    models: list[ChatModel] = [
        OpenAIChat(ModelSettings(), ""),
        AnthropicMessages(ModelSettings(), ""),
        ScriptedModel([]),
    ]
    assert [model.provider for model in models] == ["openai", "anthropic", "scripted"]
