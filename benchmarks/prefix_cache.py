"""How much of what an agent sends a prefix cache can serve, over a conversation of 200 turns, and what that costs.

    .venv/bin/python benchmarks/prefix_cache.py            # about a minute
    .venv/bin/python benchmarks/prefix_cache.py --json

The conversation is the one of tests/long_conversation: memory writes, recall in most turns, tool calls, reviews in the
background and several compressions, over real HTTP against the scripted server. Every request is sent again in other
shapes to servers of their own, so that the same conversation is counted for each way of doing it.
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

from memoranda.app import Memory
from memoranda.compression.prompts import SYSTEM as SUMMARISE
from memoranda.llm.model import ChatModel, Message, OnText, Reply, Usage
from memoranda.llm.tokens import estimate_text
from memoranda.testing.scripted.prompt_cache import prefix_digests
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest
from memoranda.tools import Tool
from tests.long_conversation import conversation_process, story
from tests.long_conversation.acknowledgements import Acknowledged

TO_REACH = 0.95
# Anthropic's rule: what is written to the cache costs a quarter more, what is read from it a tenth.
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
        """In tokens at the plain price."""
        return self.input - self.read - self.written + WRITE * self.written + READ * self.read

    @property
    def dollars(self) -> float:
        return self.cost * DOLLARS_PER_MILLION / 1_000_000

    def as_data(self) -> dict[str, Any]:
        return {
            "way": self.name, "input_tokens": self.input, "read_tokens": self.read, "written_tokens": self.written,
            "share": round(self.share, 4), "cost": round(self.cost), "dollars": round(self.dollars, 4),
        }  # fmt: skip


class Watched:
    """A model whose every request also goes, in other shapes, to other servers; only its own answer counts."""

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


class Naive:
    """Memory and recall in the system prompt, as they are at each turn."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._frozen: dict[str, str] = {}

    def __call__(self, system: str, messages: Sequence[Message]) -> tuple[str, list[Message]]:
        live = self._block()
        frozen = self._frozen.setdefault(system, live)
        said, recalled = _parted(messages)
        now = system.replace(frozen, live) if frozen else f"{system}\n\n{live}"
        return f"{now}\n\n{recalled}".strip(), said

    def _block(self) -> str:
        store = self._memory.services.curated_for(None)
        store.load_from_disk()
        return store.format_for_system_prompt("memory") or ""


class Kept:
    """What was recalled stays in the history for good, so that nothing that was sent ever changes."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def __call__(self, system: str, messages: Sequence[Message]) -> tuple[str, list[Message]]:
        said, recalled = _parted(messages)
        asked = _current(said)
        if recalled:
            self._sent.setdefault(str(said[asked]["content"]), f"{said[asked]['content']}\n\n{recalled}")
        return system, [
            {**each, "content": self._sent.get(str(each["content"]), each["content"])}
            if each["role"] == "user"
            else each
            for each in said
        ]


def _parted(messages: Sequence[Message]) -> tuple[list[Message], str]:
    """The messages without what was recalled, and that."""
    said = [dict(message) for message in messages]
    asked = said[_current(said)]
    asked["content"], fence, recalled = str(asked["content"]).partition(_FENCE)
    return said, (fence + recalled).strip()


def _current(messages: Sequence[Message]) -> int:
    return max(place for place, message in enumerate(messages) if message["role"] == "user")


class Possible:
    """What any cache could serve: every token that was sent before at the same place, with the same bytes before it."""

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
                same = max((_common(part, other) for other in followers), key=len, default="")
                read, known = read + estimate_text(same), False
            if part not in followers:
                followers.append(part)
            before = digest
        total = sum(map(estimate_text, parts))
        return Usage(total, cache_read_tokens=read, cache_write_tokens=total - read)


def _common(one: str, other: str) -> str:
    """How two texts both begin."""
    length = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    return one[: min(length, len(other))]


def _parts(body: dict[str, Any]) -> list[str]:
    """Everything that was sent, in the order in which a cache sees it: tools, system prompt, messages."""
    said = [{"role": entry["role"], **block} for entry in body["messages"] for block in entry["content"]]
    blocks = [*body.get("tools", ()), *body.get("system", ()), *said]
    bare = ({name: value for name, value in block.items() if name != "cache_control"} for block in blocks)
    return [json.dumps(block, ensure_ascii=False, sort_keys=True) for block in bare]


def measure(turns: int) -> tuple[list[Row], dict[str, int]]:
    """Tell the story once, and count it for each way of sending it."""
    with TemporaryDirectory() as place, ExitStack() as servers:
        home = Path(place) / "home"
        conversation_process.make_home(home)
        ours, naive, kept = (servers.enter_context(ScriptedServer(story.answer)) for _ in range(3))

        def watched(model: ChatModel, memory: Memory) -> ChatModel:
            shapes: list[tuple[str, Shape]] = [(naive.url, Naive(memory)), (kept.url, Kept())]
            return Watched(model, [(conversation_process.client(address), shape) for address, shape in shapes])

        conversation_process.resume_conversation(
            home, ours.url, Acknowledged(Path(place) / "acknowledged"), to=turns, model=watched
        )
        possible = Possible()
        rows = [
            Row("no cache", sum(usage.input_tokens for usage in ours.usages), 0, 0),
            _row("memory and recall in the system prompt", naive.usages),
            _row("recall kept in the history", kept.usages),
            _row("Memoranda", ours.usages),
            _row("possible at all, for the same requests", [possible.usage(each) for each in ours.received]),
        ]
        return rows, _counts(ours.received)


def _row(name: str, usages: Sequence[Usage]) -> Row:
    total = sum(usages, Usage())
    return Row(name, total.input_tokens, total.cache_read_tokens, total.cache_write_tokens)


def _counts(received: Sequence[ReceivedRequest]) -> dict[str, int]:
    """What there was to send."""
    current = [str(each.conversation[1][_current(each.conversation[1])]["content"]) for each in received]
    return {
        "requests": len(received),
        "compressions": sum(each.conversation[0] == SUMMARISE for each in received),
        "reviews": sum(text.startswith(story.REVIEW) for text in current),
        "requests with recall": sum("<memory-context>" in text for text in current),
    }


def main() -> int:
    """Measure and print; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description="Prefix caching over a long conversation.")
    parser.add_argument("--turns", type=int, default=story.TURNS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows, counts = measure(given.turns)
    reached = rows[3].read / rows[4].read
    if given.json:
        data = {"turns": given.turns, **counts, "ways": [row.as_data() for row in rows], "reached": round(reached, 4)}
        print(json.dumps(data, indent=2))
    else:
        print(f"{given.turns} turns: " + ", ".join(f"{count} {name}" for name, count in counts.items()) + "\n")
        print(f"{'':40}{'input tokens':>14}{'from cache':>12}{'share':>8}{'cost':>12}{'dollars':>9}")
        for row in rows:
            print(f"{row.name:40}{row.input:14,}{row.read:12,}{row.share:8.1%}{row.cost:12,.0f}{row.dollars:9.2f}")
        print(f"\nOf what is possible: {reached:.1%} (to reach: {TO_REACH:.0%}).")
        print(f"Cost against memory and recall in the system prompt: {rows[1].cost / rows[3].cost:.1f} times less.")
    return 0 if reached >= TO_REACH else 1


if __name__ == "__main__":
    sys.exit(main())
