"""Runs the blocking calls of adapters outside the event loop of their framework."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

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


def asynchronous(
    method: Callable[Concatenate[Any, _P], _R], run: Callable[..., Coroutine[Any, Any, Any]] = run_to_end
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _R]]:
    """The asynchronous form of a method, with its parameters and its docstring; `run` is one of the above."""

    @wraps(method)
    async def call(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        result: _R = await run(method, self, *args, **kwargs)
        return result

    return call
