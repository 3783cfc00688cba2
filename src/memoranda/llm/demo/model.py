"""The demo model: plays the part of a language model by rules, always in the same way.

It keeps what it is told about the user and their work, answers from what it remembers, looks into past conversations
for what it does not, and sums a conversation up when asked to. It makes nothing up: what it says is what it was told.
"""

import json
import time
from collections.abc import Sequence

from memoranda.llm.context_windows import DEFAULT_WINDOW
from memoranda.llm.demo.acting import act
from memoranda.llm.demo.situation import understand
from memoranda.llm.model import Message, OnText, Reply, Usage
from memoranda.llm.prefix_cache import PrefixCache
from memoranda.llm.tokens import estimate_message, estimate_text
from memoranda.tools import Tool

_PIECE = 6


class DemoModel:
    """A `ChatModel` that needs no key, no network and no weights."""

    provider = "demo"

    def __init__(self, *, name: str = "demo", window: int | None = None, pace: float = 0.0) -> None:
        """`pace` is the wait between two pieces of streamed text, in seconds, for the look of it."""
        self.name = name
        self.window = window or DEFAULT_WINDOW
        self._pace = pace
        self._cache = PrefixCache()

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
        """Answer at once."""
        text, calls = act(understand(system, messages, tools), messages)
        if on_text is not None:
            for start in range(0, len(text), _PIECE):
                on_text(text[start : start + _PIECE])
                time.sleep(self._pace)
        reply = Reply(text, tuple(calls), finish_reason="tool_calls" if calls else "stop", model=self.name)
        used = self._usage(system, messages, tools, estimate_message(reply.message()))
        return Reply(reply.text, reply.tool_calls, used, reply.finish_reason, reply.model)

    def _usage(self, system: str, messages: Sequence[Message], tools: Sequence[Tool], written: int) -> Usage:
        parts = [json.dumps(tool.openai_schema(), sort_keys=True) for tool in tools]
        parts += [system, *(json.dumps(message, sort_keys=True, default=str) for message in messages)]
        tokens = [estimate_text(part) for part in parts]
        count_known = self._cache.count_known(parts)
        read = sum(tokens[:count_known])
        return Usage(sum(tokens), written, cache_read_tokens=read, cache_write_tokens=sum(tokens) - read)
