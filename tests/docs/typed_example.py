"""A program of a caller, which type checkers read with strict settings; every `type: ignore` is a mistake they find."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import memoranda
from memoranda.types import ChatMessage, MemoryAnswer, SearchAnswer, SearchHit


@memoranda.tool
def order(item: str, count: int = 1) -> str:
    """Order something."""
    return f"{count} x {item}"


def count_words(arguments: dict[str, object]) -> dict[str, object]:
    return {"success": True, "words": len(str(arguments["text"]).split())}


COUNT = memoranda.Tool("count_words", "Count words.", {"type": "object"}, count_words)


def main(home: str) -> None:
    with memoranda.open(home) as memory, memory.session(source="example") as session:
        with session.turn("How did we fix the deadlock?") as turn:
            messages: list[ChatMessage] = turn.messages
            assert messages[-1]["role"] == "user"
            turn.done("We took the locks in one order.")
        answer: SearchAnswer = memory.search("deadlock", limit=3, sort="newest")
        hits: list[SearchHit] = answer["results"]
        receipt: MemoryAnswer = memory.remember("Locks are taken in one order.")
        conversation = memory.search(session_id=hits[0]["session_id"])
        result = {
            "titles": len([hit["title"] or hit["session_id"] for hit in hits]),
            "saved": receipt["success"],
            "roles": [message["role"] for message in conversation["messages"]],
            "streamed": asyncio.run(stream(home)),
            "ordered": order.call({"item": "rye"})["success"] and COUNT.call({"text": "a b"})["words"] == 2,
        }
        print(json.dumps(result))


async def stream(home: str) -> list[str]:
    async with memoranda.open_async(home) as memory, memory.session(source="example") as session:
        async with session.turn("And the queue?") as turn:
            messages: list[ChatMessage] = await turn.messages()
            pieces = [piece async for piece in turn.stream(chunks(len(messages)))]
        answer: SearchAnswer = await memory.search("queue", limit=3)
        count: int = await memory.run(memory.sync.sessions.session_count, "example")
        return [*pieces, str(answer["count"]), str(count)]


async def chunks(count: int) -> AsyncIterator[str]:
    yield f"{count} message"


async def async_mistakes(memory: memoranda.AsyncMemory) -> None:
    await memory.search("x", limits=3)  # type: ignore[call-overload]
    await memory.session(colour="red")  # type: ignore[call-arg]
    await memory.run(memory.sync.remember, "x", target=1)  # type: ignore[arg-type]


def mistakes(memory: memoranda.Memory) -> None:
    memory.search("x", limits=3)  # type: ignore[call-overload]
    memory.search("x", sort="sideways")  # type: ignore[call-overload]
    memory.search("x")["result"]  # type: ignore[typeddict-item]
    memory.remember("x", target=1)  # type: ignore[arg-type]
    memory.agent(tools=[count_words])  # type: ignore[list-item]


if __name__ == "__main__" and not TYPE_CHECKING:
    main(sys.argv[1])
