"""Runs hooks that are coroutines: a provider that has some gets one event loop, in its own thread."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

from memoranda.storage.files.fork_lock import ForkLock


class EventLoop:
    """The event loop of one provider, started by its first coroutine; clients that belong to a loop keep working."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = ForkLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running = 0
        self._closed = False

    def run(self, awaitable: Awaitable[Any]) -> Any:
        """Await what a hook returned; blocks the calling thread."""
        with self._lock:
            if self._loop is not None and self._thread is not None and not self._thread.is_alive():
                # In the child of a fork: the thread and its calls exist only in the parent.
                _loops_of_parent.append(self._loop)
                self._loop, self._running = None, 0
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            self._running += 1
            loop = self._loop
        try:
            return asyncio.run_coroutine_threadsafe(_result(awaitable), loop).result()
        finally:
            with self._lock:
                self._running -= 1
                self._stop_when_idle()

    def close(self) -> None:
        """Stop the loop as soon as no call runs in it."""
        with self._lock:
            self._closed = True
            self._stop_when_idle()

    def _stop_when_idle(self) -> None:
        if self._closed and not self._running and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None


# Closing one of them would take the parent's files from the selector that both processes share.
_loops_of_parent: list[asyncio.AbstractEventLoop] = []


async def _result(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
