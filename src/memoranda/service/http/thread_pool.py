"""A pool of threads for one event loop or several: a job costs one queue entry and one wake-up of the loop.

Executors of the standard library wait for their threads when the process ends, so a handler that hangs would keep the
service from stopping; the threads here are daemons.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from time import monotonic
from typing import Any


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
