"""The threads in which an `AsyncMemory` runs the blocking calls of an opened home."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from memoranda.agent.tool_functions import run_async_tools_in
from memoranda.errors import HomeError

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Calls take milliseconds, or wait for the disk or for an external memory; more threads would wait for each other.
_CALL_THREADS = 16
# A turn of an agent has a thread for as long as its model takes.
_AGENT_THREADS = 64


class WorkerThreads:
    """Runs blocking calls outside the event loop. The loop's default threads stay free for the caller's own work."""

    def __init__(self) -> None:
        self._calls = ThreadPoolExecutor(_CALL_THREADS, thread_name_prefix="memoranda-call")
        self._agents = ThreadPoolExecutor(_AGENT_THREADS, thread_name_prefix="memoranda-agent")
        self._closed = False

    async def run(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run a call to its end: a cancellation takes effect when it has ended, and then discards its result."""
        return await wait_to_end(self._start(self._calls, partial(function, *args, **kwargs)))

    async def read(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run a call that changes nothing: a cancellation takes effect at once, and the call ends unheard."""
        return await self._start(self._calls, partial(function, *args, **kwargs))

    async def open(self, function: Callable[[], _R], close: Callable[[_R], object]) -> _R:
        """Run a call that opens something to its end; after a cancellation, close what it opened."""
        future = self._start(self._calls, function)
        try:
            return await wait_to_end(future)
        except asyncio.CancelledError:
            if future.exception() is None:
                await self.run(close, future.result())
            raise

    def start_agent_turn(self, function: Callable[[], _R]) -> asyncio.Future[_R]:
        """Start a turn of an agent in a thread of its own."""
        return self._start(self._agents, function)

    def shut_down(self) -> None:
        """Wait for the calls that run; later ones raise HomeError."""
        self._closed = True
        self._agents.shutdown()
        self._calls.shutdown()

    def _start(self, threads: ThreadPoolExecutor, call: Callable[[], _R]) -> asyncio.Future[_R]:
        if self._closed:
            raise HomeError("The memory is closed. memoranda.open_async() opens it again.")
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        context.run(run_async_tools_in.set, loop)
        return loop.run_in_executor(threads, context.run, call)


async def wait_to_end(future: "asyncio.Future[_R]") -> _R:
    """Wait for a future without ever cancelling it; a cancellation of this task is raised when the future is done."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Retrieved, so that asyncio does not report an error that the cancellation replaces.
        future.exception()
        raise cancelled
    return future.result()
