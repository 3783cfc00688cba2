"""Wakes the clients that follow the feed: at once after a change in this process, soon after one in another."""

import asyncio
from collections.abc import Callable
from typing import Any

from memoranda.errors import MemorandaError
from memoranda.service.http.problems import Problem
from memoranda.service.http.workers import Workers

_POLL_SECONDS = 1.0


class FeedWatch:
    """Lets any number of clients wait, while one task looks at the head of the feed once a second for all of them."""

    def __init__(self, read_head: Callable[[], Any], workers: Workers) -> None:
        self._read_head = read_head
        self._workers = workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: asyncio.Event | None = None
        self._poller: asyncio.Task[None] | None = None
        self.waiting = 0
        self.streams = 0
        """How many clients follow the feed as a stream; only the event loop changes it."""

    def next_change(self) -> asyncio.Event:
        """The event of the next change. Taken before the feed is read, so that no change in between is missed."""
        self._loop = asyncio.get_running_loop()
        if self._changed is None:
            self._changed = asyncio.Event()
        return self._changed

    async def wait(self, change: asyncio.Event, seconds: float) -> None:
        """Wait for an event of `next_change`, for a limited time."""
        self.waiting += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll())
        try:
            async with asyncio.timeout(seconds):
                await change.wait()
        except TimeoutError:
            return
        finally:
            self.waiting -= 1

    def notify(self) -> None:
        """Wake all that wait; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _poll(self) -> None:
        """Look for changes of other processes as long as a client waits."""
        last = None
        while self.waiting:
            try:
                head = await self._workers.run(self._read_head)
            except (Problem, MemorandaError):
                # The clients see the error when they read the feed.
                head = None
            if head != last:
                last = head
                self._wake()
            await asyncio.sleep(_POLL_SECONDS)
        self._poller = None
