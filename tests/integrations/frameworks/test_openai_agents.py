"""A session of the OpenAI Agents SDK in Memoranda: durable, shared, taken back item by item, and found by search."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.agent.model_messages import INTERRUPTED_CALL
from memoranda.cli.main import command
from memoranda.errors import HomeError, SessionError
from tests.timing import GIVE_UP

pytest.importorskip("agents", reason="the package openai-agents is not installed")
from agents import Agent, RunConfig, Runner, function_tool
from agents.memory import Session, SQLiteSession
from agents.models.interface import Model
from agents.testing import ScriptedModel

from memoranda.integrations.frameworks.openai_agents import SOURCE, MemorandaSession, add_recall, memory_tools

# Importing the framework takes seconds; `make test-frameworks` runs this file too.
pytestmark = pytest.mark.slow

_ITEMS: list[Any] = [
    {"role": "user", "content": "What is the weather in Kyoto?"},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "opaque"},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"place": "Kyoto"}', "id": "f1"},
    {"type": "function_call_output", "call_id": "c1", "output": "Drizzle until noon."},
    {"type": "message", "role": "assistant", "id": "m1", "status": "completed",
     "content": [{"type": "output_text", "text": "It drizzles.", "annotations": []}]},
    {"type": "item_reference", "id": "x1"},
]  # fmt: skip


def _text(text: str) -> Any:
    return [{"type": "message", "role": "assistant", "id": "m", "status": "completed",
             "content": [{"type": "output_text", "text": text, "annotations": []}]}]  # fmt: skip


def test_items_come_back_as_they_were_and_are_found(memory: memoranda.Memory) -> None:
    """The latest with a limit; another object with the same id is the same conversation."""
    session = MemorandaSession("kyoto", memory)
    assert isinstance(session, Session)

    async def main() -> None:
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.add_items(_ITEMS)
        await session.add_items([])
        again = MemorandaSession("kyoto", memory, session_settings={"limit": 3})
        assert await again.get_items() == _ITEMS[-3:] and await again.get_items(limit=100) == _ITEMS
        assert await session.get_items(limit=0) == [] and await session.get_items() == _ITEMS
        assert await MemorandaSession("osaka", memory).get_items() == []

    asyncio.run(main())
    roles = [message["role"] for message in memory.sessions.get_messages(session.record_id)]
    assert roles == ["user", "assistant", "assistant", "tool", "assistant", "assistant"]
    for query in ("drizzle noon", "weather Kyoto"):
        assert memory.search(query)["results"][0]["source"] == SOURCE


def test_items_of_any_kind_are_taken_back_one_by_one(memory: memoranda.Memory) -> None:
    """What was taken back is not found any more, and the store can restore it."""
    session = MemorandaSession("kyoto", memory)

    async def main() -> None:
        await session.add_items(_ITEMS)
        popped = [await session.pop_item() for _ in _ITEMS]
        assert popped == _ITEMS[::-1] and await session.pop_item() is None
        await session.add_items(_ITEMS[:1])
        await session.pop_item()

    asyncio.run(main())
    last = memory.sessions.last_message_id()
    assert memory.search("drizzle")["count"] == 0
    assert memory.sessions.restore_rewound(session.record_id, last) == 1
    assert asyncio.run(session.get_items()) == _ITEMS[:1]


def test_a_cleared_session_is_empty_and_can_be_restored(memory: memoranda.Memory) -> None:
    """Clearing one that does not exist does nothing."""
    session = MemorandaSession("kyoto", memory)

    async def main() -> None:
        await MemorandaSession("osaka", memory).clear_session()
        await session.add_items(_ITEMS)
        await session.clear_session()
        assert await session.get_items() == []

    asyncio.run(main())
    memory.sessions.restore_replaced(session.record_id)
    assert asyncio.run(session.get_items()) == _ITEMS


def test_what_cannot_be_recorded_leaves_the_session_as_it_was(memory: memoranda.Memory) -> None:
    """All items or none; a closed memory raises."""
    session = MemorandaSession("kyoto", memory)
    asyncio.run(session.add_items(_ITEMS[:1]))
    with pytest.raises(SessionError, match="JSON"):
        asyncio.run(session.add_items([_ITEMS[1], cast("Any", {"role": "user", "content": object()})]))
    assert asyncio.run(session.get_items()) == _ITEMS[:1]
    memory.close()
    for use in (session.get_items, lambda: session.add_items(_ITEMS)):
        with pytest.raises(HomeError):
            asyncio.run(use())


@pytest.mark.parametrize("operation", ["add", "pop", "clear"])
def test_a_cancelled_write_has_a_known_outcome(tmp_path: Path, operation: str) -> None:
    """The cancellation takes effect when the write has ended."""

    async def main(memory: memoranda.Memory) -> None:
        session = MemorandaSession("kyoto", memory)
        await session.add_items(_ITEMS[:2])
        other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        write = {"add": lambda: session.add_items(_ITEMS[2:3]), "pop": session.pop_item, "clear": session.clear_session}
        task = asyncio.ensure_future(write[operation]())
        for _ in range(20):
            await asyncio.sleep(0.001)
            task.cancel()
        assert not task.done()
        other.execute("ROLLBACK")
        other.close()
        with pytest.raises(asyncio.CancelledError):
            await task
        # A call without a result gets one, which is not recorded.
        left = {"add": _ITEMS[:3], "pop": _ITEMS[:1], "clear": []}[operation]
        assert (await session.get_items())[:3] == left

    with memoranda.open(tmp_path) as memory:
        asyncio.run(main(memory))


def test_many_writers_of_one_session_lose_nothing(memory: memoranda.Memory) -> None:
    """Each batch stays together; users of the same id do not see each other."""
    ana = memory.for_user("ana")

    async def main() -> None:
        batches = [[{"role": "user", "content": f"{writer}.{item}"} for item in range(3)] for writer in range(20)]
        await asyncio.gather(*(MemorandaSession("s", memory).add_items(cast("Any", batch)) for batch in batches))
        items = cast("Any", await MemorandaSession("s", memory).get_items())
        texts = [item["content"] for item in items]
        assert sorted(texts) == sorted(item["content"] for batch in batches for item in batch)
        assert all(texts[start].endswith(".0") for start in range(0, 60, 3))
        await MemorandaSession("s", ana).add_items(_ITEMS[:1])
        assert len(await MemorandaSession("s", ana).get_items()) == 1

    asyncio.run(main())


def test_an_agent_of_the_sdk_continues_its_conversation(memory: memoranda.Memory) -> None:
    """The second run gets the items of the first, tool calls included; the memory tools save what they should."""

    @function_tool
    def weather(place: str) -> str:
        return f"{place}: drizzle"

    call = {"type": "function_call", "call_id": "c1", "id": "f1", "name": "weather", "arguments": '{"place": "Kyoto"}'}
    fact = '{"action": "add", "target": "memory", "content": "It drizzles in Kyoto."}'
    save = {"type": "function_call", "call_id": "c2", "id": "f2", "name": "memory", "arguments": fact}
    session = MemorandaSession("kyoto", memory)

    async def main() -> None:
        model = ScriptedModel()
        agent = Agent(name="test", model=cast("Model", model), tools=[weather, *memory_tools(memory)])
        for reply in ([_call(call)], [_call(save)], _message("It drizzles."), _message("In Kyoto.")):
            model.enqueue(reply)
        assert (await Runner.run(agent, "Weather?", session=session)).final_output == "It drizzles."
        assert (await Runner.run(agent, "Where?", session=session)).final_output == "In Kyoto."
        assert len(model.calls[-1].input) == 7

    asyncio.run(main())
    assert memory.entries("memory") == ("It drizzles in Kyoto.",)
    assert len(asyncio.run(session.get_items())) == 8


def test_recall_is_added_to_a_copy_of_the_users_message(memory: memoranda.Memory) -> None:
    """The model reads it, the session does not keep it, and the own conversation is not recalled."""
    with memory.session() as earlier, earlier.turn("The oven of the bakery shows error E17 and stays cold.") as turn:
        turn.done("Replace its thermostat, part 4711: that fixes error E17 of this oven.")
    session = MemorandaSession("kyoto", memory)
    config = RunConfig(call_model_input_filter=cast("Any", add_recall(memory, session, seconds=GIVE_UP)))

    async def main() -> None:
        model = ScriptedModel()
        agent = Agent(name="test", model=cast("Model", model))
        for question in ("How did we fix the bakery oven when it showed error E17?", "Write a haiku about submarines."):
            model.enqueue(_message("Done."))
            await Runner.run(agent, question, session=session, run_config=config)
        first, second = (str(call.input) for call in model.calls)
        assert "part 4711" in first and "part 4711" not in second

    asyncio.run(main())
    assert "part 4711" not in str(asyncio.run(session.get_items()))


def _call(item: Any) -> Any:
    from openai.types.responses import ResponseFunctionToolCall

    return ResponseFunctionToolCall(**item)


def _message(text: str) -> Any:
    from openai.types.responses import ResponseOutputMessage

    return [ResponseOutputMessage.model_validate(item) for item in _text(text)]


def test_a_call_that_was_interrupted_has_a_result_that_says_so(memory: memoranda.Memory) -> None:
    """Without it the service would refuse every later run; the record keeps what really happened."""
    session = MemorandaSession("kyoto", memory)
    second = {"type": "custom_tool_call", "call_id": "c2", "name": "code", "input": "1"}
    interrupted = [*_ITEMS[:3], second, {"role": "user", "content": "And now?"}]

    async def main() -> Any:
        await session.add_items(interrupted)
        return await session.get_items()

    items = asyncio.run(main())
    assert [item for item in items if item.get("output") != INTERRUPTED_CALL] == interrupted
    assert [(item["type"], item["call_id"]) for item in items[3:6:2]] == [
        ("function_call_output", "c1"),
        ("custom_tool_call_output", "c2"),
    ]
    assert len(memory.sessions.get_messages(session.record_id)) == len(interrupted)


def test_an_imported_session_continues(memory: memoranda.Memory, tmp_path: Path) -> None:
    """What the SDK's own storage has is found under the same id after an import, item by item."""
    said = [{"role": "developer", "content": "Be brief."}, *_ITEMS]
    file, home = tmp_path / "sessions.db", str(tmp_path / "home")
    thanks: Any = {"role": "user", "content": "Thanks."}

    async def store() -> None:
        theirs = SQLiteSession("ann/1", file)
        await theirs.add_items(said)
        theirs.close()

    async def continue_it() -> list[Any]:
        session = MemorandaSession("ann/1", memory)
        await session.add_items([thanks])
        return list(await session.get_items())

    asyncio.run(store())
    arguments = ["import", "openai-agents", "--home", home, "--source", str(file), "--yes"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert asyncio.run(continue_it()) == [*said, thanks]
    assert memory.search("drizzle noon")["results"][0]["source"] == SOURCE
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert asyncio.run(continue_it()) == [*said, thanks, thanks]
