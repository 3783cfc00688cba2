"""What a request would cost behind a prompt cache, by the rule of the API that was called.

OpenAI-compatible services serve the longest beginning that they saw before. Anthropic writes at the breakpoints that a
request sets, and finds again what was written at one of them, or up to twenty blocks before one.
"""

import json
from typing import Any

from memoranda.llm.model import Usage
from memoranda.llm.prefix_cache import PrefixCache, digests_of
from memoranda.llm.tokens import estimate_text
from memoranda.testing.scripted.steps import ReceivedRequest
from memoranda.tools import JsonObject

_LOOKBACK = 20


class ScriptedCache:
    """The caches of both APIs."""

    def __init__(self) -> None:
        self._prefixes = PrefixCache()
        self._written: set[bytes] = set()

    def usage(self, received: ReceivedRequest) -> Usage:
        """The input side of what a request uses."""
        return self._anthropic(received.json) if received.api == "anthropic" else self._openai(received.json)

    def _openai(self, body: JsonObject) -> Usage:
        parts = [_text(part) for part in (*(body.get("tools") or ()), *(body.get("messages") or ()))]
        tokens = [estimate_text(part) for part in parts]
        return Usage(sum(tokens), cache_read_tokens=sum(tokens[: self._prefixes.count_known(parts)]))

    def _anthropic(self, body: JsonObject) -> Usage:
        blocks = _blocks(body)
        parts = [_text({key: value for key, value in block.items() if key != "cache_control"}) for block in blocks]
        tokens = [estimate_text(part) for part in parts]
        digests = list(digests_of(parts))
        marks = [place for place, block in enumerate(blocks) if "cache_control" in block]
        known = [
            place + 1
            for mark in marks
            for place in range(max(0, mark - _LOOKBACK + 1), mark + 1)
            if digests[place] in self._written
        ]
        read = max(known, default=0)
        end = max(marks, default=-1) + 1
        self._written.update(digests[mark] for mark in marks)
        return Usage(
            sum(tokens), cache_read_tokens=sum(tokens[:read]), cache_write_tokens=sum(tokens[read : max(read, end)])
        )


def _blocks(body: JsonObject) -> list[JsonObject]:
    """Everything that the cache sees, in its order: tools, system prompt, messages."""
    system = body.get("system") or []
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    said = [
        {"role": entry.get("role")} | block
        for entry in body.get("messages") or ()
        for block in _as_list(entry.get("content"))
    ]
    return [*(body.get("tools") or ()), *system, *said]


def _as_list(content: Any) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _text(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, sort_keys=True)
