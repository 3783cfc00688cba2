"""Bounded pools of threads for handlers: the store is synchronous, and the event loop must never wait for it.

A job costs one queue entry and one wake-up of the loop. Executors of the standard library wait for their threads when
the process ends, so a handler that hangs would keep the service from stopping; the threads here are daemons.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from time import monotonic
from typing import Any, Literal, TypeVar

from memoranda.service.http.metrics import Metrics
from memoranda.service.http.problems import Problem
from memoranda.service.http.settings import ServerSettings

_T = TypeVar("_T")
_END = object()
_CHECK_THREADS = 2
CHECK_SECONDS = 3.0
"""How long the checks of operators may take: load balancers often wait no longer than five seconds."""
PoolName = Literal["store", "search", "check"]


class Job:
    """A function that a thread is to call, and the future that receives its result."""

    __slots__ = ("_context", "_future", "_loop", "_work", "asked_at", "started_at")

    def __init__(self, work: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        self._work = work
        self._future = future
        self._loop = future.get_loop()
        self._context = copy_context()
        self.asked_at = monotonic()
        self.started_at = 0.0
        """When a thread began with it; 0 until then."""

    def run(self) -> None:
        """Call the function and deliver what it returns or raises; a job that its caller gave up is skipped."""
        if self._future.done():
            return
        self.started_at = monotonic()
        result, error = None, None
        try:
            result = self._context.run(self._work)
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):
            # The loop is closed only when the service ends and nothing waits for the result any more.
            self._loop.call_soon_threadsafe(self._deliver, result, error)

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        if self._future.done():
            return
        if error is None:
            self._future.set_result(result)
        else:
            self._future.set_exception(error)


class ThreadPool:
    """Up to `size` threads, started when they are needed; further jobs wait in the order in which they came."""

    def __init__(self, name: str, size: int) -> None:
        self.size = size
        self._name = name
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0
        self._started = 0

    @property
    def waiting(self) -> int:
        """How many jobs no thread has begun with."""
        return max(0, self._unfinished - self.size)

    @property
    def is_full(self) -> bool:
        """Whether another job would have to wait for a thread."""
        return self._unfinished >= self.size

    def submit(self, job: Job) -> None:
        """Run a job as soon as a thread is free."""
        with self._lock:
            self._unfinished += 1
            must_start = self._started < min(self._unfinished, self.size)
            self._started += must_start
        if must_start:
            threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            job.run()
            # A reference would keep the request and its answer until the next job comes.
            del job
            with self._lock:
                self._unfinished -= 1


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
