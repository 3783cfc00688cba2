"""Hosts for tests: one that speaks raw lines to a real process, and one in this process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoranda.api.memory import Memory
from memoranda.integrations.mcp.server import McpServer
from memoranda.integrations.tool_host import ToolHost
from tests.timing import GIVE_UP

MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def arguments(home: Path, *more: str) -> list[str]:
    """What a host runs, without the interpreter."""
    return ["-m", "memoranda", "mcp", "--home", str(home), *more]


class RawHost:
    """A host that writes lines and reads lines."""

    def __init__(self, home: Path, *more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments(home, *more)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._number = 0

    def send(self, message: Any) -> None:
        assert self.process.stdin
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        """The result of one request."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        answer = self.read()
        assert answer["id"] == self._number
        return answer["result"]

    def call(self, name: str, **given: Any) -> Any:
        """The answer of a tool."""
        return json.loads(self.ask("tools/call", name=name, arguments=given)["content"][0]["text"])

    def leave(self) -> int:
        """Close the input and wait; the exit code."""
        _, errors = self.process.communicate(timeout=GIVE_UP)
        assert b"Traceback" not in errors, errors.decode()
        return self.process.returncode


@contextmanager
def raw_host(home: Path, *more: str) -> Iterator[RawHost]:
    """A host that leaves nothing behind, whatever happens in the test."""
    host = RawHost(home, *more)
    try:
        yield host
    finally:
        if host.process.poll() is None:
            host.process.kill()
        host.process.communicate()


def server_for(memory: Memory, **options: bool) -> McpServer:
    """A server in this process, for tests of what it answers."""
    return McpServer(ToolHost(memory, source="mcp"), **options)


def ask(server: McpServer, method: str, **params: Any) -> Any:
    """The whole answer to one request."""
    return server.answer({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
