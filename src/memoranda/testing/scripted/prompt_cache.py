"""Simulates the prompt caches of both APIs, to count the cached tokens of a request.

OpenAI-compatible services read the longest known prefix from the cache. Anthropic caches at the breakpoints of a
request, and finds a cached prefix that ends at a breakpoint or up to twenty blocks before one.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from memoranda.models.model import Usage
from memoranda.models.tokens import estimate_text
from memoranda.support.tool import JsonObject
from memoranda.testing.scripted.steps import ReceivedRequest

_LOOKBACK = 20


class ScriptedCache:
    """The caches of both APIs; it keeps fingerprints, not texts."""

    def __init__(self) -> None:
        self._prefixes: set[bytes] = set()
        self._written: set[bytes] = set()

    def usage(self, received: ReceivedRequest) -> Usage:
        """The input tokens of a request, including cached ones; adds the request to the cache."""
        return self._anthropic(received.json) if received.api == "anthropic" else self._openai(received.json)

    def _openai(self, body: JsonObject) -> Usage:
        parts = [_text(part) for part in (*(body.get("tools") or ()), *(body.get("messages") or ()))]
        tokens = [estimate_text(part) for part in parts]
        digests = list(prefix_digests(parts))
        known = next((index for index, digest in enumerate(digests) if digest not in self._prefixes), len(digests))
        self._prefixes.update(digests)
        return Usage(sum(tokens), cache_read_tokens=sum(tokens[:known]))

    def _anthropic(self, body: JsonObject) -> Usage:
        blocks = _blocks(body)
        parts = [_text({key: value for key, value in block.items() if key != "cache_control"}) for block in blocks]
        tokens = [estimate_text(part) for part in parts]
        digests = list(prefix_digests(parts))
        breakpoints = [index for index, block in enumerate(blocks) if "cache_control" in block]
        known = [
            index + 1
            for position in breakpoints
            for index in range(max(0, position - _LOOKBACK + 1), position + 1)
            if digests[index] in self._written
        ]
        read = max(known, default=0)
        end = max(breakpoints, default=-1) + 1
        self._written.update(digests[position] for position in breakpoints)
        return Usage(
            sum(tokens), cache_read_tokens=sum(tokens[:read]), cache_write_tokens=sum(tokens[read : max(read, end)])
        )


def prefix_digests(parts: Sequence[str]) -> Iterator[bytes]:
    """The fingerprint of the parts up to and including each one."""
    running = hashlib.sha256()
    for part in parts:
        running.update(len(part).to_bytes(8, "big"))
        running.update(part.encode("utf-8", "surrogatepass"))
        yield running.digest()[:16]


def _blocks(body: JsonObject) -> list[JsonObject]:
    """Everything that the cache covers, in its order: tools, system prompt, messages."""
    system = body.get("system") or []
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    messages = [
        {"role": entry.get("role")} | block
        for entry in body.get("messages") or ()
        for block in _as_list(entry.get("content"))
    ]
    return [*(body.get("tools") or ()), *system, *messages]


def _as_list(content: Any) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _text(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, sort_keys=True)
