"""Measures how much of an agent's input a prefix cache serves over a conversation of 200 turns, and what it costs.

    .venv/bin/python benchmarks/prefix_cache.py            # about a minute

The conversation is the one of tests/long_conversation: memory writes, recall in most turns, tool calls, reviews in the
background and several compressions, over real HTTP against the scripted server. Every request is also sent in other
shapes to separate servers, so that the same conversation is counted for each way of sending it.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from memoranda.agent.compression.prompts import SYSTEM as SUMMARISE
from memoranda.api.memory import Memory
from memoranda.models.model import ChatModel, Message, OnText, Reply, Usage
from memoranda.models.tokens import estimate_text
from memoranda.support.tool import Tool
from memoranda.testing.scripted.server import ScriptedServer, prefix_digests
from memoranda.testing.scripted.steps import ReceivedRequest
from tests.long_conversation import conversation_process, story
from tests.long_conversation.acknowledgements import Acknowledged

TARGET = 0.95
# Anthropic's prices: a token written to the cache costs a quarter more, a token read from it a tenth.
WRITE, READ = 1.25, 0.10
DOLLARS_PER_MILLION = 3.0
_FENCE = "\n\n<memory-context>"

Shape = Callable[[str, Sequence[Message]], tuple[str, list[Message]]]


@dataclass(frozen=True, slots=True)
class Row:
    """One way of sending the conversation."""

    name: str
    input: int
    read: int
    written: int

    @property
    def share(self) -> float:
        return self.read / self.input

    @property
    def cost(self) -> float:
        """The cost in tokens at the uncached price."""
        return self.input - self.read - self.written + WRITE * self.written + READ * self.read

    @property
    def dollars(self) -> float:
        return self.cost * DOLLARS_PER_MILLION / 1_000_000


class MirroringModel:
    """A model that also sends every request, in other shapes, to other servers, and ignores their answers."""

    provider = "anthropic"

    def __init__(self, model: ChatModel, others: Sequence[tuple[ChatModel, Shape]]) -> None:
        self.name, self.window = model.name, model.window
        self._model = model
        self._others = others

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
        for other, shape in self._others:
            shaped = (system, list(messages)) if system == SUMMARISE else shape(system, messages)
            other.reply(*shaped, tools, max_tokens=max_tokens)
        return self._model.reply(system, messages, tools, on_text=on_text, max_tokens=max_tokens, deadline=deadline)


class MemoryInSystemPrompt:
    """Puts the current memory and the recall of each turn into the system prompt."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._frozen: dict[str, str] = {}

    def __call__(self, system: str, messages: Sequence[Message]) -> tuple[str, list[Message]]:
        live = self._block()
        frozen = self._frozen.setdefault(system, live)
        without_recall, recalled = _split_recall(messages)
        current = system.replace(frozen, live) if frozen else f"{system}\n\n{live}"
        return f"{current}\n\n{recalled}".strip(), without_recall

    def _block(self) -> str:
        store = self._memory.services.curated_for(None)
        store.load_from_disk()
        return store.format_for_system_prompt("memory") or ""


class RecallInHistory:
    """Keeps the recalled text in the history, so that no message that was sent ever changes."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def __call__(self, system: str, messages: Sequence[Message]) -> tuple[str, list[Message]]:
        without_recall, recalled = _split_recall(messages)
        question = str(without_recall[_last_user_index(without_recall)]["content"])
        if recalled:
            self._sent.setdefault(question, f"{question}\n\n{recalled}")
        return system, [
            {**message, "content": self._sent.get(str(message["content"]), message["content"])}
            if message["role"] == "user"
            else message
            for message in without_recall
        ]


def _split_recall(messages: Sequence[Message]) -> tuple[list[Message], str]:
    """Return the messages without the recalled text, and the recalled text."""
    without_recall = [dict(message) for message in messages]
    question = without_recall[_last_user_index(without_recall)]
    question["content"], fence, recalled = str(question["content"]).partition(_FENCE)
    return without_recall, (fence + recalled).strip()


def _last_user_index(messages: Sequence[Message]) -> int:
    return max(index for index, message in enumerate(messages) if message["role"] == "user")


class IdealCache:
    """An ideal cache: it serves every token that was sent before after the same bytes."""

    def __init__(self) -> None:
        self._after: dict[bytes, list[str]] = {}

    def usage(self, received: ReceivedRequest) -> Usage:
        parts = _parts(received.json)
        before, read, known = b"", 0, True
        for part, digest in zip(parts, prefix_digests(parts), strict=True):
            followers = self._after.setdefault(before, [])
            if known and part in followers:
                read += estimate_text(part)
            elif known:
                # The part differs, but its beginning may be the same.
                same = max((_common_prefix(part, other) for other in followers), key=len, default="")
                read, known = read + estimate_text(same), False
            if part not in followers:
                followers.append(part)
            before = digest
        total = sum(map(estimate_text, parts))
        return Usage(total, cache_read_tokens=read, cache_write_tokens=total - read)


def _common_prefix(one: str, other: str) -> str:
    length = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    return one[: min(length, len(other))]


def _parts(body: dict[str, Any]) -> list[str]:
    """Return the parts of a request in the order in which a cache sees them: tools, system prompt, messages."""
    messages = [{"role": entry["role"], **block} for entry in body["messages"] for block in entry["content"]]
    blocks = [*body.get("tools", ()), *body.get("system", ()), *messages]
    bare = ({name: value for name, value in block.items() if name != "cache_control"} for block in blocks)
    return [json.dumps(block, ensure_ascii=False, sort_keys=True) for block in bare]


def measure(turns: int) -> tuple[list[Row], dict[str, int]]:
    """Run the conversation once, and count the tokens for each way of sending it."""
    with TemporaryDirectory() as directory, ExitStack() as servers:
        home = Path(directory) / "home"
        conversation_process.make_home(home)
        ours, naive, kept = (servers.enter_context(ScriptedServer(story.answer)) for _ in range(3))

        def mirror(model: ChatModel, memory: Memory) -> ChatModel:
            shapes: list[tuple[str, Shape]] = [(naive.url, MemoryInSystemPrompt(memory)), (kept.url, RecallInHistory())]
            return MirroringModel(model, [(conversation_process.client(address), shape) for address, shape in shapes])

        conversation_process.resume_conversation(
            home, ours.url, Acknowledged(Path(directory) / "acknowledged"), to=turns, model=mirror
        )
        ideal = IdealCache()
        rows = [
            Row("no cache", sum(usage.input_tokens for usage in ours.usages), 0, 0),
            _row("memory and recall in the system prompt", naive.usages),
            _row("recall kept in the history", kept.usages),
            _row("Memoranda", ours.usages),
            _row("possible at all, for the same requests", [ideal.usage(request) for request in ours.received]),
        ]
        return rows, _counts(ours.received)


def _row(name: str, usages: Sequence[Usage]) -> Row:
    total = sum(usages, Usage())
    return Row(name, total.input_tokens, total.cache_read_tokens, total.cache_write_tokens)


def _counts(received: Sequence[ReceivedRequest]) -> dict[str, int]:
    """Count the requests by kind."""
    conversations = [request.conversation for request in received]
    current = [str(messages[_last_user_index(messages)]["content"]) for _, messages, _ in conversations]
    return {
        "requests": len(received),
        "compressions": sum(system == SUMMARISE for system, _, _ in conversations),
        "reviews": sum(text.startswith(story.REVIEW) for text in current),
        "requests with recall": sum("<memory-context>" in text for text in current),
    }


def main() -> int:
    """Measure and print; returns 1 when the target is missed."""
    parser = argparse.ArgumentParser(description="Prefix caching over a long conversation.")
    parser.add_argument("--turns", type=int, default=story.TURNS)
    options = parser.parse_args()
    rows, counts = measure(options.turns)
    reached = rows[3].read / rows[4].read
    print(f"{options.turns} turns: " + ", ".join(f"{count} {name}" for name, count in counts.items()) + "\n")
    print(f"{'':40}{'input tokens':>14}{'from cache':>12}{'share':>8}{'cost':>12}{'dollars':>9}")
    for row in rows:
        print(f"{row.name:40}{row.input:14,}{row.read:12,}{row.share:8.1%}{row.cost:12,.0f}{row.dollars:9.2f}")
    print(f"\nShare of what is possible: {reached:.1%} (target: {TARGET:.0%}).")
    print(f"Cost against memory and recall in the system prompt: {rows[1].cost / rows[3].cost:.1f} times less.")
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
