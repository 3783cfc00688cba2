"""What the asyncio classes are made of: methods of synchronous classes that run in threads, typed like the originals.

    class AsyncSession(InThreads[Session]):
        record = run_in_thread(Session.record)

The same serves an opened home, whose calls wait for a disk, and a client, whose calls wait for a service.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from memoranda.errors import SessionBusyError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Sync = TypeVar("_Sync")
_END = object()


class Threads(Protocol):
    """Runs blocking calls outside the event loop."""

    async def run(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run a call that may write."""

    async def read(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run a call that changes nothing: a cancellation takes effect at once, and the call ends unheard."""

    async def open(self, function: Callable[[], _R], close: Callable[[_R], object]) -> _R:
        """Run a call that opens something; after a cancellation, what it opened is closed."""


class InThreads(Generic[_Sync]):
    """An object for one event loop. `sync` is the one behind it, whose methods `run` calls in a thread."""

    def __init__(self, sync: _Sync, threads: Threads) -> None:
        self.sync = sync
        self._threads = threads

    async def run(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run any other function in a thread: `await memory.run(memory.sync.sessions.list_sessions_rich, limit=5)`."""
        return await self._threads.run(function, *args, **kwargs)


def run_in_thread(
    method: Callable[Concatenate[Any, _P], _R],
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _R]]:
    """Make a coroutine method of a method of the class of `sync`, with its signature and its docstring."""

    @wraps(method)
    async def call(wrapper: InThreads[Any], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await wrapper._threads.run(method, wrapper.sync, *args, **kwargs)

    return call


def read_in_thread(
    method: Callable[Concatenate[Any, _P], _R],
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _R]]:
    """The same for a method that changes nothing, so that a cancellation takes effect at once."""

    @wraps(method)
    async def call(wrapper: InThreads[Any], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await wrapper._threads.read(method, wrapper.sync, *args, **kwargs)

    return call


def iterate_in_threads(
    method: Callable[Concatenate[Any, _P], Iterator[_R]],
) -> Callable[Concatenate[Any, _P], AsyncGenerator[_R, None]]:
    """The same for a generator that changes nothing: each of its steps runs in a thread."""

    @wraps(method)
    async def iterate(wrapper: InThreads[Any], /, *args: _P.args, **kwargs: _P.kwargs) -> AsyncGenerator[_R, None]:
        iterator = method(wrapper.sync, *args, **kwargs)
        while True:
            # Not StopIteration: a future cannot carry it.
            found: Any = await wrapper._threads.read(lambda: next(iterator, _END))
            if found is _END:
                return
            yield found

    return iterate


_Opened = TypeVar("_Opened", bound=AbstractAsyncContextManager[Any, None])


class Opener(Generic[_Opened]):
    """What `open_async`, `AsyncMemory.session` and `AsyncSession.turn` return: `await` it, or enter it once.

    `async with` also closes what was opened when the block ends; after `await`, the caller closes it.
    """

    def __init__(self, open_it: Callable[[], Awaitable[_Opened]]) -> None:
        self._open = open_it
        self._opened: _Opened | None = None

    def __await__(self) -> Generator[Any, None, _Opened]:
        return self._open().__await__()

    async def __aenter__(self) -> _Opened:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *error: Any) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(*error)


class _SyncTurn(Protocol):
    def close(self) -> None: ...


_Turn = TypeVar("_Turn", bound=_SyncTurn)


class TurnQueues:
    """Begins the turns of a session in the order in which the tasks asked. Waiting takes no thread.

    A waiting thread would be missing for the others, the turn that it waits for included. So the first in the queue
    tries again after a pause, in seconds, which grows from the first to the longest.
    """

    def __init__(self, threads: Threads, first_pause: float = 0.001, max_pause: float = 0.05) -> None:
        self._threads = threads
        self._first_pause = first_pause
        self._max_pause = max_pause
        self._queues: dict[str, tuple[asyncio.Lock, int]] = {}

    async def begin(self, session_id: str, begin: Callable[[], _Turn], wait: float) -> _Turn:
        """Call `begin` until it no longer raises SessionBusyError; raises that itself after `wait` seconds."""
        deadline = asyncio.get_running_loop().time() + wait
        queue = self._join(session_id)
        try:
            try:
                async with asyncio.timeout_at(deadline):
                    await queue.acquire()
            except TimeoutError:
                raise _busy(session_id, wait) from None
            try:
                return await self._poll(session_id, begin, wait, deadline)
            finally:
                queue.release()
        finally:
            self._leave(session_id)

    async def _poll(self, session_id: str, begin: Callable[[], _Turn], wait: float, deadline: float) -> _Turn:
        loop, pause = asyncio.get_running_loop(), self._first_pause
        while True:
            try:
                return await self._threads.open(begin, lambda turn: turn.close())
            except SessionBusyError:
                remaining = deadline - loop.time()
                if remaining <= 0:
                    raise _busy(session_id, wait) from None
                await asyncio.sleep(min(remaining, pause))
                pause = min(pause * 2, self._max_pause)

    def _join(self, session_id: str) -> asyncio.Lock:
        lock, count = self._queues.get(session_id, (asyncio.Lock(), 0))
        self._queues[session_id] = (lock, count + 1)
        return lock

    def _leave(self, session_id: str) -> None:
        lock, count = self._queues.pop(session_id)
        if count > 1:
            self._queues[session_id] = (lock, count - 1)


def _busy(session_id: str, wait: float) -> SessionBusyError:
    return SessionBusyError(
        f"Another turn of session {session_id!r} is in progress and did not end within {wait:g} s. Nothing of this one "
        "was recorded. Send the message again when that turn has ended."
    )
