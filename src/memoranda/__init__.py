"""Memoranda: a memory for AI agents.

    import memoranda

    memory = memoranda.open()
    with memory.session() as session:
        session.prompt     # what the agent knows, byte-stable for the session
        session.tools      # what the model may call
        with session.turn("How did we fix the deadlock?") as turn:
            turn.done(your_model(turn.messages, session.tools))
    memory.search("deadlock", since="30d")
    memory.remember("Project uses pytest with xdist.")

Importing this package does no work; each part is loaded when it is first used.
"""

# Not from `typing`: a hook loads nothing that takes as long.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memoranda import curator as curator
    from memoranda import errors as errors
    from memoranda import safety as safety
    from memoranda import types as types
    from memoranda.agent.loop import Agent as Agent
    from memoranda.agent.tool_functions import tool as tool
    from memoranda.api.aio.agent import AsyncAgent as AsyncAgent
    from memoranda.api.aio.memory import AsyncMemory as AsyncMemory
    from memoranda.api.aio.memory import open_async as open_async
    from memoranda.api.aio.session import AsyncSession as AsyncSession
    from memoranda.api.aio.session import AsyncTurn as AsyncTurn
    from memoranda.api.client.async_memory import connect_async as connect_async
    from memoranda.api.client.memory import connect as connect
    from memoranda.api.memory import Memory as Memory
    from memoranda.api.memory import open_memory as open
    from memoranda.api.session import Session as Session
    from memoranda.api.turn import Turn as Turn
    from memoranda.errors import MemorandaError as MemorandaError
    from memoranda.external.provider import MemoryProvider as MemoryProvider
    from memoranda.home.memory_store import MemoryStore as MemoryStore
    from memoranda.home.session_db import SessionDB as SessionDB
    from memoranda.support.tool import Tool as Tool

__version__ = "0.1.0"

_LAZY = {
    "open": ("memoranda.api.memory", "open_memory"),
    "open_async": ("memoranda.api.aio.memory", "open_async"),
    "AsyncAgent": ("memoranda.api.aio.agent", "AsyncAgent"),
    "AsyncMemory": ("memoranda.api.aio.memory", "AsyncMemory"),
    "AsyncSession": ("memoranda.api.aio.session", "AsyncSession"),
    "AsyncTurn": ("memoranda.api.aio.session", "AsyncTurn"),
    "connect": ("memoranda.api.client.memory", "connect"),
    "connect_async": ("memoranda.api.client.async_memory", "connect_async"),
    "Memory": ("memoranda.api.memory", "Memory"),
    "Session": ("memoranda.api.session", "Session"),
    "MemoryStore": ("memoranda.home.memory_store", "MemoryStore"),
    "MemoryProvider": ("memoranda.external.provider", "MemoryProvider"),
    "SessionDB": ("memoranda.home.session_db", "SessionDB"),
    "MemorandaError": ("memoranda.errors", "MemorandaError"),
    "Agent": ("memoranda.agent.loop", "Agent"),
    "Tool": ("memoranda.support.tool", "Tool"),
    "Turn": ("memoranda.api.turn", "Turn"),
    "tool": ("memoranda.agent.tool_functions", "tool"),
    "curator": ("memoranda.curator", ""),
    "errors": ("memoranda.errors", ""),
    "safety": ("memoranda.safety", ""),
    "types": ("memoranda.types", ""),
}
__all__ = [
    "Agent",
    "AsyncAgent",
    "AsyncMemory",
    "AsyncSession",
    "AsyncTurn",
    "MemorandaError",
    "Memory",
    "MemoryProvider",
    "MemoryStore",
    "Session",
    "SessionDB",
    "Tool",
    "Turn",
    "__version__",
    "connect",
    "connect_async",
    "curator",
    "errors",
    "open",
    "open_async",
    "safety",
    "tool",
    "types",
]


def __getattr__(name: str) -> "Any":
    from importlib import import_module  # noqa: PLC0415

    if name not in _LAZY:
        raise AttributeError(f"module 'memoranda' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def __dir__() -> list[str]:
    return list(__all__)
