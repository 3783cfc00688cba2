"""The official client over either transport, for slow tests: importing it takes seconds."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.integrations.mcp.hosts import arguments, http_server
from tests.timing import GIVE_UP

Era = Literal["auto", "legacy"]
Transport = Literal["stdio", "http"]


@asynccontextmanager
async def client(home: Path, transport: Transport, era: Era, *more: str) -> AsyncIterator[Client]:
    """The official client, connected to a server of its own."""
    if transport == "stdio":
        told = {"HOME": os.environ["HOME"]}
        server = StdioServerParameters(command=sys.executable, args=arguments(home, *more), env=told)
        async with Client(server, mode=era) as connected:
            yield connected
        return
    with http_server(home, *more) as said:
        headers = {"Authorization": f"Bearer {said['secret']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=GIVE_UP) as http,
            Client(streamable_http_client(said["url"], http_client=http), mode=era) as connected,
        ):
            yield connected


def run(host: Callable[[], Awaitable[None]]) -> None:
    """Let a host do what it does, at most for a minute."""
    asyncio.run(asyncio.wait_for(host(), 60))
