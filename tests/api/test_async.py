"""The asyncio interface never blocks the event loop, and a cancelled task leaves no lock and no lost write behind.

A test that proves that the loop is free makes a call wait until a heartbeat of the loop has beaten many times: code
that blocks the loop would wait for ever, on a fast machine as on a slow one.
"""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import pytest

import memoranda
from memoranda.agent.model_messages import FAILED_ANSWER, PARTIAL_ANSWER
from memoranda.errors import HomeError, ModelReplyError, SessionBusyError, SessionError
from memoranda.models.model import Reply, ToolCall
from memoranda.testing.scripted.model import ScriptedModel
from tests.timing import GIVE_UP, without_waiting

pytestmark = pytest.mark.slow

_ID = "s1"
_BEATS = 50
_R = TypeVar("_R")
_ANSWER_ONE = """
import asyncio, sys
from tests.api.test_async import answer_in_process
asyncio.run(answer_in_process(*sys.argv[1:]))
"""


def run(main: Coroutine[Any, Any, _R]) -> _R:
    async def limited() -> _R:
        async with asyncio.timeout(GIVE_UP):
            return await main

    return asyncio.run(limited())


class Heartbeat:
    """Counts the rounds of the event loop; `wait_for_beats` blocks a thread until there were many more of them."""

    def __init__(self) -> None:
        self.beats = 0
        self._beaten = threading.Condition()

    async def beat(self) -> None:
        while True:
            with self._beaten:
                self.beats += 1
                self._beaten.notify_all()
            await asyncio.sleep(0.0001)

    def wait_for_beats(self) -> None:
        with self._beaten:
            wanted = self.beats + _BEATS
            assert self._beaten.wait_for(lambda: self.beats >= wanted, GIVE_UP), "The event loop is blocked."


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    heart = Heartbeat()
    task = asyncio.create_task(heart.beat())
    try:
        yield heart
    finally:
        task.cancel()


async def _answer(session: memoranda.AsyncSession, number: int) -> None:
    """A tool loop with one call, in which other tasks get many chances to interfere."""
    async with session.turn(f"Fact {number}.", wait=GIVE_UP) as turn:
        await asyncio.sleep(0)
        call = {"id": f"c{number}", "type": "function", "function": {"name": "memory", "arguments": "{}"}}
        await turn.record("assistant", None, tool_calls=[call])
        fact = {"action": "add", "target": "memory", "content": f"Fact {number}."}
        result = await session.call("memory", fact)
        await turn.record("tool", json.dumps(result), tool_call_id=f"c{number}", tool_name="memory")
        last = (await turn.messages())[-1]["content"]
        await turn.done(f"receipt {number}: {last}")


async def answer_in_process(home: str, number: str) -> None:
    """Run one turn of the session that all processes of a test share."""
    async with memoranda.open_async(home) as memory:
        await _answer(await memory.session(session_id=_ID), int(number))


def _check_four_true_turns(memory: memoranda.Memory) -> None:
    messages = memory.sessions.get_messages_as_conversation(_ID)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"] * 4
    for question, _, result, answer in zip(*(iter(messages),) * 4, strict=True):
        number = question["content"].split()[1].rstrip(".")
        assert answer["content"] == f"receipt {number}: {result['content']}"
        assert json.loads(result["content"])["success"] and f"Fact {number}." in result["content"]
    assert sorted(memory.entries("memory")) == [f"Fact {number}." for number in range(4)]


def test_four_tasks_on_one_session_give_four_true_answers(tmp_path: Path) -> None:
    """Each turn is recorded as a whole, with one object for the session or with four."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory:
            shared = await memory.session(session_id=_ID)
            sessions = [shared, shared, await memory.session(session_id=_ID), await memory.session(session_id=_ID)]
            await asyncio.gather(*(_answer(session, number) for number, session in enumerate(sessions)))
            _check_four_true_turns(memory.sync)

    run(main())


def test_four_processes_on_one_session_give_four_true_answers(tmp_path: Path) -> None:
    """The same is true between processes."""
    processes = [
        subprocess.Popen([sys.executable, "-c", _ANSWER_ONE, str(tmp_path), str(number)]) for number in range(4)
    ]
    assert [process.wait(GIVE_UP) for process in processes] == [0] * 4
    with memoranda.open(tmp_path) as memory:
        _check_four_true_turns(memory)


def test_more_tasks_wait_for_a_turn_than_there_are_threads(tmp_path: Path) -> None:
    """Waiting takes no thread, so the turn that they wait for can end; they come in the order in which they asked."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory, memory.session(session_id=_ID) as session:

            async def ask(number: int) -> None:
                async with session.turn(f"{number}", wait=GIVE_UP) as turn:
                    await turn.done("Yes.")

            async with session.turn("first") as turn:
                waiting = [asyncio.create_task(ask(number)) for number in range(40)]
                async with asyncio.timeout(GIVE_UP):
                    while len(session._queues._queues) == 0:
                        await asyncio.sleep(0)
                await turn.done("Yes.")
            await asyncio.gather(*waiting)
            questions = [each["content"] for each in await session.conversation() if each["role"] == "user"]
            assert questions == ["first", *map(str, range(40))]
            assert session._queues._queues == {}

    run(main())


def _write_operations() -> dict[str, Callable[[memoranda.AsyncSession], Awaitable[object]]]:
    async def take_a_turn(session: memoranda.AsyncSession) -> None:
        async with session.turn("b") as turn:
            await turn.record("system", "x")
            await turn.done("B.")

    return {
        "turn": take_a_turn,
        "record": lambda session: session.record("user", "x"),
        "undo": lambda session: session.undo(),
        "end": lambda session: session.end(),
        "title": lambda session: session.run(session.sync.rename, "A title"),
    }


@pytest.mark.parametrize("operation", _write_operations())
def test_the_loop_runs_while_another_process_locks_the_database(tmp_path: Path, operation: str) -> None:
    """The lock ends only after many beats of the loop."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory, memory.session() as session, heartbeat() as heart:
            async with session.turn("a") as turn:
                await turn.done("A.")
            other = sqlite3.connect(tmp_path / "state.db", isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")

            def unlock() -> None:
                heart.wait_for_beats()
                other.execute("ROLLBACK")

            unlocked = asyncio.create_task(asyncio.to_thread(unlock))
            before = heart.beats
            await _write_operations()[operation](session)
            assert heart.beats - before >= _BEATS
            await unlocked
            other.close()

    run(main())


def test_the_loop_runs_while_a_model_a_tool_and_a_summary_take_their_time(tmp_path: Path) -> None:
    """Each of them waits in a thread for the loop; a coroutine of a tool runs in the loop itself."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with heartbeat() as heart:

            def summarize(instructions: str, transcript: str) -> str:
                heart.wait_for_beats()
                return "A summary."

            @memoranda.tool
            async def price(item: str) -> str:
                """The price of an item."""
                assert asyncio.get_running_loop() is loop
                await asyncio.sleep(0)
                return f"{item}: 3"

            @memoranda.tool
            def stock(item: str) -> str:
                """How many there are."""
                heart.wait_for_beats()
                return f"{item}: 7"

            def calls(*_: Any) -> Reply:
                heart.wait_for_beats()
                names = ("price", "stock")
                return Reply("", tool_calls=tuple(ToolCall(name, name, '{"item": "rye"}') for name in names))

            def answer(system: str, messages: Sequence[Any], tools: Any) -> Reply:
                return Reply(" ".join(each["content"] for each in messages if each["role"] == "tool"))

            async with memoranda.open_async(tmp_path, summarize=summarize) as memory:
                agent = await memory.agent(ScriptedModel([calls, answer]), tools=[price, stock])
                text = await agent.turn("What about rye?")
                assert "rye: 3" in text and "rye: 7" in text
                assert "summary" in (await memory.search("rye"))["results"][0]

    run(main())


def test_no_file_is_read_or_written_in_the_thread_of_the_loop(tmp_path: Path) -> None:
    """Opening, a session with its prompt, turns, tools and search: the store and the files are used in threads."""
    found: set[str] = set()

    def profile(frame: FrameType, event: str, called: Any) -> None:
        """Note what touches a file: calls to the system, and to the parts that read and write."""
        if event == "c_call" and called.__qualname__ != "fspath":
            owner = type(called.__self__).__module__
            if called.__module__ in ("posix", "_io", "io") or owner == "sqlite3":
                found.add(called.__qualname__)
        path = frame.f_code.co_filename
        if event == "call" and any(f"/memoranda/{part}/" in path for part in ("db", "sessions", "index", "recall")):
            found.add(f"{path}:{frame.f_code.co_name}")

    async def use(memory: memoranda.AsyncMemory) -> None:
        async with memory.session(instructions="Be brief.", directory=tmp_path) as session:
            assert "Be brief." in session.prompt and session.id
            await _answer(session, 1)
            assert (await session.remember("A fact."))["success"]
            assert len(await session.entries()) == len(await memory.entries()) == 2
            assert (await memory.search("fact"))["count"] == 1
            assert (await memory.call("session_search", {"query": "fact"}))["success"]
            assert not (await session.compress()).done and await session.undo()

    async def main() -> None:
        # Once before, because the first use imports modules.
        async with memoranda.open_async(tmp_path / "a") as memory:
            await use(memory)
        sys.setprofile(profile)
        try:
            async with memoranda.open_async(tmp_path / "b") as memory:
                await use(memory)
        finally:
            sys.setprofile(None)

    run(main())
    assert found == set()


def _contents(memory: memoranda.AsyncMemory) -> list[Any]:
    return [each["content"] for each in memory.sync.sessions.get_messages_as_conversation(_ID)]


def test_a_cancelled_turn_is_recorded_as_interrupted_and_leaves_no_lock(tmp_path: Path) -> None:
    """Whatever was recorded before stays; the next turn begins at once, in another object too."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory:
            session, began = await memory.session(session_id=_ID), asyncio.Event()

            async def work() -> None:
                async with session.turn("a") as turn:
                    await turn.record("system", "a step")
                    began.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await began.wait()
            with pytest.raises(SessionBusyError, match="in progress"):
                await session.turn("b", wait=0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with (await memory.session(session_id=_ID)).turn("b", wait=0) as turn:
                await turn.done("B.")
            assert _contents(memory) == ["a", "a step", "b", "B."]

    run(main())


@pytest.mark.parametrize("step", ["begin", "record", "done"])
def test_a_write_that_is_cancelled_half_way_is_finished_first(tmp_path: Path, step: str) -> None:
    """The cancellation takes effect when the write is durable, so it cannot fall into the next turn."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory:
            session, reached = await memory.session(session_id=_ID), asyncio.Event()
            async with session.turn("zero") as turn:
                await turn.done("Zero.")
            other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)

            async def work() -> None:
                if step == "begin":
                    other.execute("BEGIN IMMEDIATE")
                    reached.set()
                async with session.turn("a") as turn:
                    other.execute("BEGIN IMMEDIATE")
                    reached.set()
                    await (turn.record("system", "a step") if step == "record" else turn.done("A."))

            task = asyncio.create_task(work())
            await reached.wait()
            for _ in range(_BEATS):
                # Again and again, as a server that shuts down does.
                await asyncio.sleep(0.001)
                task.cancel()
            assert not task.done()
            other.execute("ROLLBACK")
            other.close()
            with pytest.raises(asyncio.CancelledError):
                await task
            recorded = {"begin": ["a"], "record": ["a", "a step"], "done": ["a", "A."]}[step]
            assert _contents(memory)[2:] == recorded
            async with session.turn("b", wait=0) as turn:
                await turn.done("B.")

    run(main())


def test_a_task_that_waits_for_a_turn_can_be_cancelled_at_once(tmp_path: Path) -> None:
    """Nothing of its message is recorded."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory:
            session = await memory.session(session_id=_ID)
            async with session.turn("a") as turn:
                waiting = asyncio.create_task(_answer(session, 1))
                await asyncio.sleep(0.01)
                waiting.cancel()
                with without_waiting(), pytest.raises(asyncio.CancelledError):
                    await waiting
                await turn.done("A.")
            assert _contents(memory) == ["a", "A."]

    run(main())


def test_a_turn_inside_another_of_the_same_task_is_a_clear_error_at_once(tmp_path: Path) -> None:
    """It would wait for itself. Nothing of it is recorded."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory, memory.session(session_id=_ID) as session:
            async with session.turn("a") as turn:
                with without_waiting(), pytest.raises(SessionBusyError, match="open in this task"):
                    await session.turn("b", wait=2 * GIVE_UP)
                with pytest.raises(SessionBusyError):
                    await session.undo()
                await turn.done("A.")
            undone = await session.undo()
            assert undone is not None and undone.text == "a"

    run(main())


async def _chunks(*texts: str, then: BaseException | None = None) -> AsyncIterator[str]:
    for text in texts:
        yield text
    if then is not None:
        raise then


def test_a_streamed_answer_is_recorded_when_it_is_complete(tmp_path: Path) -> None:
    """Recalled memory that the model repeats is neither shown nor recorded."""
    fenced = ["You said: ", "<memory-con", "text>\nsecret\n</memory-context>", " that is all."]

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory, memory.session(session_id=_ID) as session:
            async with session.turn("a") as turn:
                shown = [text async for text in turn.stream(_chunks(*fenced))]
                assert not turn.interrupted
            assert "".join(shown) == "You said:  that is all."
            assert "secret" not in str(_contents(memory))
            with pytest.raises(ModelReplyError):
                async with session.turn("b") as turn:
                    _ = [text async for text in turn.stream(_chunks())]
            assert turn.interrupted

    run(main())


@pytest.mark.parametrize("how", ["left", "cancelled", "failed"])
def test_a_streamed_answer_that_breaks_off_is_recorded_as_interrupted(tmp_path: Path, how: str) -> None:
    """With a note, so that no reader takes it for the whole answer."""

    async def main() -> None:
        async with memoranda.open_async(tmp_path) as memory, memory.session(session_id=_ID) as session:
            error = {"left": None, "cancelled": asyncio.CancelledError(), "failed": OSError("line is dead")}[how]

            async def work() -> None:
                async with session.turn("a") as turn, aclosing(turn.stream(_chunks("One ", "two", then=error))) as text:
                    async for piece in text:
                        if how == "left" and piece == "two":
                            break

            if error is None:
                await work()
            else:
                with pytest.raises(type(error)):
                    await work()
            note = FAILED_ANSWER if how == "failed" else PARTIAL_ANSWER
            assert _contents(memory) == ["a", f"One two\n\n{note}"]
            async with session.turn("b", wait=0) as turn:
                await turn.done("B.")

    run(main())


def test_an_agent_streams_its_answer_and_a_reader_that_leaves_interrupts_it(tmp_path: Path) -> None:
    """What was written until then is recorded; the next turn waits for the model's next word, and no longer."""

    async def main() -> None:
        events: list[Any] = []
        async with memoranda.open_async(tmp_path) as memory:
            session = await memory.session(session_id=_ID)
            model = ScriptedModel([Reply("One two three."), Reply("Four five six seven."), Reply("Eight.")], piece=5)
            agent = await memory.agent(model, session=session, on_event=events.append)
            assert [piece async for piece in agent.stream("a")] == ["One t", "wo th", "ree."]
            assert agent.session is session and events and agent.tools
            async with aclosing(agent.stream("b")) as pieces:
                async for _ in pieces:
                    break
            assert await agent.turn("c", wait=GIVE_UP) == "Eight."
            contents = _contents(memory)
            assert contents[:3] == ["a", "One two three.", "b"] and contents[-2:] == ["c", "Eight."]

    run(main())


def test_a_cancelled_turn_of_an_agent_ends_at_the_next_word(tmp_path: Path) -> None:
    """The caller gets the cancellation at once; the rest of the answer is not recorded."""

    async def main() -> None:
        asked, proceed = threading.Event(), threading.Event()

        def answer(*_: Any) -> Reply:
            asked.set()
            assert proceed.wait(GIVE_UP)
            return Reply("Much too late.")

        async with memoranda.open_async(tmp_path) as memory:
            session = await memory.session(session_id=_ID)
            agent = await memory.agent(ScriptedModel([answer, Reply("B.")], piece=5), session=session)
            task = asyncio.create_task(agent.turn("a"))
            assert await asyncio.to_thread(asked.wait, GIVE_UP)
            task.cancel()
            with without_waiting(), pytest.raises(asyncio.CancelledError):
                await task
            proceed.set()
            assert await agent.turn("b", wait=GIVE_UP) == "B."
            assert _contents(memory)[0::2] == ["a", "b"] and "late" not in str(_contents(memory))

    run(main())


def test_use_after_close_and_mistakes_raise(tmp_path: Path) -> None:
    """As they do in the synchronous interface; an unknown option raises when the session is opened."""

    async def main() -> None:
        memory: Any = await memoranda.open_async(tmp_path)
        session = await memory.session()
        mistakes: list[tuple[Callable[[], Any], type[Exception]]] = [
            (lambda: memory.session(colour="red"), TypeError),
            (lambda: memory.search("x", limits=3), TypeError),
            (lambda: session.turn(""), SessionError),
            (lambda: session.record("robot", "x"), SessionError),
        ]
        for mistake, error in mistakes:
            with pytest.raises(error):
                await mistake()
        await memory.close()
        await memory.close()
        uses: list[Callable[[], Any]] = [
            memory.session,
            lambda: memory.search("x"),
            lambda: session.turn("x"),
            session.conversation,
        ]
        for use in uses:
            with pytest.raises(HomeError, match=r"is closed. memoranda.open_async\(\) opens it again"):
                await use()

    run(main())


def test_an_async_tool_runs_without_the_asyncio_interface(tmp_path: Path) -> None:
    """In a loop of its own; where one runs already, the model gets an error instead of a deadlock."""

    @memoranda.tool
    async def price(item: str) -> str:
        """The price of an item."""
        await asyncio.sleep(0)
        return f"{item}: 3"

    assert price.call({"item": "rye"}) == {"success": True, "result": "rye: 3"}

    async def main() -> Any:
        return price.call({"item": "rye"})

    refusal = run(main())
    assert refusal["reason"] == "error" and "memoranda.open_async()" in refusal["error"]
