"""`memoranda mcp`: serve a home over MCP, through standard input and output."""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import click

from memoranda.api.memory import Memory
from memoranda.cli.background_tasks import log_resources, maintain_while_open
from memoranda.cli.context import Invocation, memory_options
from memoranda.integrations.mcp.server import McpServer
from memoranda.integrations.mcp.stdio_server import McpStdioServer, claim_standard_streams
from memoranda.integrations.tool_host import ToolHost, open_for_hosts
from memoranda.support.projects import project_of

_EPILOG = """\b
Examples:
  memoranda mcp                        started by a host, such as Claude Code
  memoranda mcp --user ana             with the memory of one user of a gateway

\b
A host that starts servers by itself needs only this:
  {"mcpServers": {"memoranda": {"command": "memoranda", "args": ["mcp"]}}}
"""
_SOURCE = "mcp"


def _refuse_http(context: click.Context, option: click.Parameter, value: object) -> None:
    """Refuse the options of the server that this command had for HTTP."""
    if value:
        raise click.UsageError(
            f"{option.opts[0]} was removed: 'memoranda server serve' answers MCP over HTTP, at "
            "http://127.0.0.1:8930/mcp; 'memoranda server key create' makes a key for a host."
        )


@click.command(epilog=_EPILOG)
@click.option("--bare", is_flag=True, help="Omit the memory from the instructions (hooks already provide it).")
@click.option("--http", is_flag=True, hidden=True, expose_value=False, callback=_refuse_http)
@click.option("--port", hidden=True, expose_value=False, callback=_refuse_http)
@click.option("--token", is_flag=True, hidden=True, expose_value=False, callback=_refuse_http)
@click.option("--new-token", is_flag=True, hidden=True, expose_value=False, callback=_refuse_http)
@memory_options
def command(invocation: Invocation, bare: bool) -> None:
    """Offer memory, search and the provider's tools to any program that speaks MCP."""
    signal.signal(signal.SIGTERM, _exit_on_signal)
    if sys.stdin.isatty():
        text = "Waiting for an MCP client on standard input; Ctrl-D stops the server. See 'memoranda mcp --help'."
        click.echo(text, err=True)
    directory = _current_directory()
    memory = open_for_hosts(invocation.home, profile=invocation.profile, user=invocation.user)
    with (
        memory,
        suppress(KeyboardInterrupt),
        log_resources(memory.home.root, _SOURCE),
        maintain_while_open(memory.home, memory.config.retention),
    ):
        tool_host = ToolHost(
            memory,
            source=_SOURCE,
            current_project=lambda: project_of(directory),
            heard=lambda: _heard_words(memory),
        )
        try:
            source, sink = claim_standard_streams()
            tool_host.start_in_background()
            McpStdioServer(McpServer(tool_host, bare=bare), source, sink).serve()
        finally:
            tool_host.wait_for_start()


def _exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Exits with code 0: SIGTERM is how a server usually ends, and every answered write is on disk."""
    raise SystemExit(0)


def _current_directory() -> str:
    """Returns the directory in which the host started us, usually the one it works in; "" if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _heard_words(memory: Memory) -> list[str]:
    from memoranda.integrations.hooks.user_words import heard_words  # noqa: PLC0415

    return heard_words(memory)
