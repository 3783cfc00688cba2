"""Hooks that are coroutines are run, and fail like any other."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from memoranda.external.guarded_call import EventLoop
from tests.external.samples import Scripted, managed
from tests.forked import forking, in_child
from tests.timing import GIVE_UP, wait_until


def test_coroutines_are_awaited_in_one_loop_of_the_provider(tmp_path: Path) -> None:
    """What one hook made in it, another can use."""
    told: list[str] = []
    loops: set[int] = set()

    async def initialize(session_id: str, **facts: Any) -> None:
        loops.add(id(asyncio.get_running_loop()))

    async def sync_turn(user: str, assistant: str, **facts: Any) -> None:
        loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0.01)
        told.append(user)

    async def prefetch(query: str, **facts: Any) -> str:
        await asyncio.sleep(0.01)
        return f"about {query}"

    manager = managed(tmp_path, Scripted(initialize=initialize, sync_turn=sync_turn, prefetch=prefetch))
    assert manager.status().ready
    assert manager.recall("tea") == "about tea"
    assert manager.notify.turn_finished("q1", "a1")
    assert manager.drain(GIVE_UP)
    assert (told, len(loops)) == (["q1"], 1)
    assert manager.shutdown()
    wait_until(lambda: "memoranda-in-memory-loop" not in {each.name for each in threading.enumerate()})


def test_a_coroutine_that_raises_is_a_delivery_that_failed(tmp_path: Path) -> None:
    """It is tried again, and not counted as delivered."""
    tries: list[str] = []

    async def sync_turn(user: str, assistant: str, **facts: Any) -> None:
        tries.append(user)
        if len(tries) == 1:
            raise ConnectionError("refused")

    manager = managed(tmp_path, Scripted(sync_turn=sync_turn))
    assert manager.notify.turn_finished("q1", "a1")
    assert manager.drain(GIVE_UP)
    assert tries == ["q1", "q1"]
    manager.shutdown()


@forking
def test_a_forked_process_gets_a_loop_of_its_own() -> None:
    """The thread of the first loop exists only in the parent, where it still works."""
    loop = EventLoop("loop")

    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    def use() -> None:
        assert loop.run(answer()) == 42
        loop.close()

    assert loop.run(answer()) == 42
    assert in_child(use, longest=10) == 0
    use()
