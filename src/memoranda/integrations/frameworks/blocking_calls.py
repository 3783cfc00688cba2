"""Runs the blocking calls of adapters outside the event loop of their framework, calls of memory tools among them."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from memoranda.api.aio.threads import WorkerThreads

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

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


def call_tool(memory: "Memory", name: str, arguments: Any) -> str:
    """Call a memory tool and return its answer as JSON text; a failure is an answer too."""
    return json.dumps(memory.call(name, arguments), ensure_ascii=False)


async def call_tool_outside_the_loop(memory: "Memory", name: str, arguments: Any) -> str:
    """Call a memory tool without blocking the event loop; a cancellation takes effect when it has ended."""
    return await run_to_end(call_tool, memory, name, arguments)
