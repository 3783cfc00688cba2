"""A provider is called with the arguments it takes, and nothing that it raises gets out.

Hooks that are coroutines are run, and fail like any other.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.guarded_call import GuardedProvider, describe
from memoranda.external.health import HealthTracker
from tests.external.samples import InMemory, Scripted, managed
from tests.timing import GIVE_UP, HANG, wait_until

METADATA = {"write_origin": "assistant_tool", "origin": "chat", "old_text": "x"}
WRITE = {"action": "add", "target": "user", "content": "Likes tea."}


class _Mirror:
    """Notes what `on_memory_write` was called with."""

    def __init__(self) -> None:
        self.got: Any = None


class _Keyword(_Mirror):
    def on_memory_write(self, action: str, target: str, content: str, metadata: Any = None) -> None:
        self.got = (action, target, content, metadata)


class _AnyKeyword(_Mirror):
    def on_memory_write(self, action: str, target: str, content: str, **kw: Any) -> None:
        self.got = (action, target, content, kw["metadata"])


class _Positional(_Mirror):
    def on_memory_write(self, action: str, target: str, content: str, meta: Any) -> None:
        self.got = (action, target, content, meta)


class _PositionalOnly(_Mirror):
    def on_memory_write(self, a: str, b: str, c: str, d: Any, /) -> None:
        self.got = (a, b, c, d)


class _Legacy(_Mirror):
    def on_memory_write(self, action: str, target: str, content: str) -> None:
        self.got = (action, target, content)


class _AnyPlace(_Mirror):
    def on_memory_write(self, *args: Any) -> None:
        self.got = args


class _KeywordOnly(_Mirror):
    def on_memory_write(self, action: str, target: str, content: str, *, origin: str | None = None) -> None:
        self.got = (action, target, content, origin)


class _AllByName(_Mirror):
    def on_memory_write(self, *, action: str, target: str, content: str, metadata: Any, idempotency_key: str) -> None:
        self.got = (action, target, content, metadata, idempotency_key)


class _Hidden(_Mirror):
    """A method that does not show what it takes."""

    def on_memory_write(self, action: str, target: str, content: str, metadata: Any = None) -> None:
        self.got = (action, target, content, metadata)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return _NoSignature(found) if name == "on_memory_write" else found


class _NoSignature:
    __signature__ = "none"

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__call = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__call(*args, **kwargs)


BASIC = ("add", "user", "Likes tea.")


def test_every_shape_of_a_memory_write_arrives() -> None:
    """Metadata by name, by place, in part or not at all, as the signature has it."""
    for provider, expected in [
        (_Keyword, (*BASIC, METADATA)),
        (_AnyKeyword, (*BASIC, METADATA)),
        (_Positional, (*BASIC, METADATA)),
        (_PositionalOnly, (*BASIC, METADATA)),
        (_Legacy, BASIC),
        (_AnyPlace, BASIC),
        (_KeywordOnly, (*BASIC, "chat")),
        (_AllByName, (*BASIC, METADATA, "k")),
        (_Hidden, (*BASIC, METADATA)),
    ]:
        made = provider()
        answer = GuardedProvider(made, "p", HealthTracker()).call(
            "on_memory_write", WRITE, {"metadata": METADATA, "idempotency_key": "k"}, within=5
        )
        assert answer.ok, answer.error
        assert made.got == expected


def test_what_a_provider_has_no_room_for_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """In the log, with the provider and the hook."""
    calling = GuardedProvider(_Legacy(), "old", HealthTracker())
    with caplog.at_level(logging.INFO, "memoranda.external"):
        for _ in range(3):
            calling.call("on_memory_write", WRITE, {"metadata": METADATA}, within=5)
    assert [record.getMessage() for record in caplog.records] == [
        "Memory provider old accepts no 'metadata' in on_memory_write; it is left out."
    ]


def test_facts_reach_those_who_take_them() -> None:
    """By name, or all of them; never one that a parameter is filled with already."""

    class Provider(InMemory):
        def prefetch(self, query: str, session_id: str = "", limit: int = 3) -> str:  # type: ignore[override]
            return f"{query} {session_id} {limit}"

    calling = GuardedProvider(Provider(), "p", HealthTracker())
    facts = {"session_id": "s", "query": "not this", "unheard": 1}
    assert calling.call("prefetch", {"query": "q"}, facts, within=5).value == "q s 3"
    assert calling.accepts("sync_turn", "anything")
    assert not calling.accepts("prefetch", "anything")


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError()]
)
def test_nothing_that_is_raised_gets_out(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with provider, phase and error, and noted."""

    class Provider(InMemory):
        def prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> str:
            raise error

    health = HealthTracker()
    answer = GuardedProvider(Provider(), "bad", health).call("prefetch", {"query": "q"}, within=5)
    assert (answer.ok, answer.error) == (False, describe(error))
    assert f"Memory provider bad failed in prefetch: {describe(error)}" in caplog.text
    noted = health.snapshot()
    assert (noted.phase, noted.last_error, noted.consecutive_failures) == ("prefetch", describe(error), 1)


def test_an_error_is_shown_in_one_line_without_credentials() -> None:
    """Also an error that cannot say what it is."""

    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Unspeakable" in describe(Unspeakable())
    key = "sk-" + "proj-q8Zx0vW2mN5cR7yHtUe1LsKdGa4Bf6JpT3XbwYrM"
    assert key not in describe(ValueError(f"refused\nwith {key}"))
    assert "\n" not in describe(ValueError("two\nlines"))
    assert len(describe(ValueError("x" * 10_000))) <= 500


def test_an_overdue_hook_is_not_called_again_until_it_returns() -> None:
    """Others are; the thread does not keep the process alive."""
    release = threading.Event()
    calls: list[int] = []

    class Provider(InMemory):
        def on_turn_start(self, turn_number: int, message: str, **facts: Any) -> None:
            calls.append(turn_number)
            release.wait(HANG)

    calling = GuardedProvider(Provider(), "slow", HealthTracker())

    def turn(number: int) -> Any:
        return calling.call("on_turn_start", {"turn_number": number, "message": ""}, within=0.05)

    began = time.monotonic()
    assert turn(1).overdue
    assert turn(2).error == "still busy with an earlier call"
    assert time.monotonic() - began < GIVE_UP
    assert calling.call("prefetch", {"query": "q"}, within=5).ok
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("memoranda-slow"))
    release.set()
    wait_until(lambda: not calling.is_busy("on_turn_start"))
    assert turn(3).ok
    assert calls == [1, 3]


def test_health_is_well_again_when_the_same_phase_works() -> None:
    """Another phase that works says nothing about it; the last error stays to be seen."""
    health = HealthTracker()
    health.record_failure("sync_turn", "down")
    health.record_failure("sync_turn", "down")
    health.record_success("prefetch")
    assert (health.snapshot().consecutive_failures, health.snapshot().healthy) == (2, False)
    health.record_success("sync_turn")
    assert (health.snapshot().consecutive_failures, health.snapshot().healthy, health.snapshot().last_error) == (
        0,
        True,
        "down",
    )


def test_there_may_be_no_thread_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is a failure like any other."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert (
        "can't start"
        in GuardedProvider(InMemory(), "p", HealthTracker()).call("prefetch", {"query": "q"}, within=1).error
    )


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
    assert manager.prefetch_all("tea") == "about tea"
    assert manager.sync_all("q1", "a1")
    assert manager.drain(GIVE_UP)
    assert (told, len(loops)) == (["q1"], 1)
    assert manager.shutdown_all()
    wait_until(lambda: "memoranda-in-memory-loop" not in {each.name for each in threading.enumerate()})


def test_a_coroutine_that_raises_is_a_delivery_that_failed(tmp_path: Path) -> None:
    """It is tried again, and not counted as delivered."""
    tries: list[str] = []

    async def sync_turn(user: str, assistant: str, **facts: Any) -> None:
        tries.append(user)
        if len(tries) == 1:
            raise ConnectionError("refused")

    manager = managed(tmp_path, Scripted(sync_turn=sync_turn))
    assert manager.sync_all("q1", "a1")
    assert manager.drain(GIVE_UP)
    assert tries == ["q1", "q1"]
    manager.shutdown_all()
