"""Bounded pools of threads for handlers: the store is synchronous, and the event loop must never wait for it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from time import monotonic
from typing import Any, Literal, TypeVar

from memoranda.service.http.metrics import Metrics
from memoranda.service.http.problems import Problem
from memoranda.service.http.settings import ServerSettings
from memoranda.service.http.thread_pool import Job, ThreadPool

_T = TypeVar("_T")
_END = object()
_CHECK_THREADS = 2
CHECK_SECONDS = 3.0
"""How long the checks of operators may take: load balancers often wait no longer than five seconds."""
PoolName = Literal["store", "search", "check"]


class Workers:
    """Runs functions in threads: so many at once, so many waiting, each for a limited time.

    Searches have threads of their own. They use the processor for as long as they run, so that in one pool with
    appends, a few of them would make every append wait. So have the checks of operators: when the database cannot be
    reached, all other threads wait for it.
    """

    def __init__(self, settings: ServerSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._pools = {
            "store": ThreadPool("request", settings.threads),
            "search": ThreadPool("search", settings.search_threads),
            "check": ThreadPool("check", _CHECK_THREADS),
        }

    async def run(self, work: Callable[[], _T], *, pool_name: PoolName = "store", seconds: float | None = None) -> _T:
        """Call a function in a thread; raises Problem 503 if too many wait, or if it takes too long.

        `seconds` is a limit other than that of the settings. A function that takes too long keeps its thread until it
        ends, so that there are never more threads.
        """
        pool = self._pools[pool_name]
        seconds = self._settings.request_seconds if seconds is None else seconds
        must_wait = pool.is_full
        if must_wait and pool.waiting >= self._settings.max_waiting:
            raise Problem(503, "overloaded", "Too many requests are waiting. Try again.", {"Retry-After": "1"})
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        job = Job(work, future)
        pool.submit(job)
        timer = loop.call_later(seconds, self._give_up, future, seconds)
        try:
            result: _T = await future
            return result
        finally:
            timer.cancel()
            if must_wait:
                self._metrics.add("memoranda_pool_waits_total")
                self._metrics.add("memoranda_pool_wait_seconds_total", (job.started_at or monotonic()) - job.asked_at)

    def _give_up(self, future: "asyncio.Future[Any]", seconds: float) -> None:
        """Answer without the result; the job is skipped if no thread has begun with it."""
        if not future.done():
            future.set_exception(
                Problem(
                    503,
                    "too_slow",
                    f"There was no result within {seconds:g} s. If the request changes "
                    "something, it may still do so: repeat it with the same Idempotency-Key.",
                    {"Retry-After": "5"},
                )
            )

    async def iterate(self, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Produce the parts of a stream, each in a thread."""
        while True:
            part = await self.run(lambda: next(parts, _END))
            if part is _END:
                return
            assert isinstance(part, bytes)
            yield part
