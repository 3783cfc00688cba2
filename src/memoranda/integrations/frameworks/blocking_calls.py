"""Runs the blocking calls of adapters outside the event loop of their framework."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from memoranda.api.aio.threads import WorkerThreads

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Shared by all adapters; a thread is started when one is needed.
_threads = WorkerThreads()


async def run_to_end(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Run a call that may write; a cancellation takes effect when it has ended, so that nothing is half written."""
    return await _threads.run(function, *args, **kwargs)


async def read(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Run a call that changes nothing; a cancellation takes effect at once."""
    return await _threads.read(function, *args, **kwargs)
