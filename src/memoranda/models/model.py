"""The chat model protocol: a system prompt, messages and tools in, one reply out.

Messages are plain dicts in the form of OpenAI's chat API, exactly as the session store returns them. Each client
translates them for its vendor and translates the answer back, so no other code depends on a vendor.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import astuple, field
from typing import Any, Protocol

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import Tool

Message = dict[str, Any]
OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; `input_tokens` counts everything that was sent, including the cached part."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(operator.add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model asks for; `arguments` is JSON text as the model wrote it, and may be invalid."""

    id: str
    name: str
    arguments: str

    def as_json(self) -> Message:
        """The call as it appears in an assistant message."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer from a model.

    `finish_reason` is stop, tool_calls, length or refusal, or the vendor's own word for anything else.
    `reasoning_details` are opaque blocks that the vendor expects back unchanged in the next request.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    model: str = ""
    reasoning: str = ""
    reasoning_details: list[Any] | None = None

    def message(self) -> Message:
        """The assistant message to record, without empty fields."""
        message: Message = {"role": "assistant", "content": self.text or None}
        if self.tool_calls:
            message["tool_calls"] = [call.as_json() for call in self.tool_calls]
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.reasoning_details:
            message["reasoning_details"] = self.reasoning_details
        message["finish_reason"] = self.finish_reason
        return message


class ChatModel(Protocol):
    """Anything that answers a conversation."""

    @property
    def name(self) -> str:
        """The model's name as the vendor writes it."""

    @property
    def provider(self) -> str:
        """The service: openai, anthropic, openrouter, ollama, scripted …"""

    @property
    def window(self) -> int:
        """The context window in tokens."""

    def reply(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        on_text: OnText | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Returns the model's answer; raises only ModelError.

        With `on_text` the answer is streamed: the function receives each piece of text as it arrives. `deadline` is in
        seconds and covers the whole call with all its retries.
        """
