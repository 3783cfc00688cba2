"""The official client over standard input and output, for slow tests: importing it takes seconds."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.integrations.mcp.hosts import arguments

Era = Literal["auto", "legacy"]


@asynccontextmanager
async def client(home: Path, era: Era, *more: str) -> AsyncIterator[Client]:
    """The official client, connected to a server of its own."""
    told = {"HOME": os.environ["HOME"]}
    server = StdioServerParameters(command=sys.executable, args=arguments(home, *more), env=told)
    async with Client(server, mode=era) as connected:
        yield connected


def run(host: Callable[[], Awaitable[None]]) -> None:
    """Let a host do what it does, at most for a minute."""
    asyncio.run(asyncio.wait_for(host(), 60))
