"""`memoranda mcp`: serve a home over MCP, through standard input and output or over HTTP on this machine."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
  memoranda mcp --http --port 8931     for hosts that connect to an address
  memoranda mcp --token                print the token that such a host has to send

\b
A host that starts servers by itself needs only this:
  {"mcpServers": {"memoranda": {"command": "memoranda", "args": ["mcp"]}}}
"""
_PORT = 8931
_SOURCE = "mcp"


@click.command(epilog=_EPILOG)
@click.option("--http", "over_http", is_flag=True, help="Serve over HTTP on the loopback address instead.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True,
              help="The port to listen on; 0 chooses a free one.")  # fmt: skip
@click.option("--bare", is_flag=True, help="Omit the memory from the instructions (hooks already provide it).")
@click.option("--token", "show_token", is_flag=True, help="Print the token for HTTP and exit.")
@click.option("--new-token", is_flag=True, help="Replace the token for HTTP, print the new one and exit.")
@memory_options
def command(invocation: Invocation, over_http: bool, port: int, bare: bool, show_token: bool, new_token: bool) -> None:
    """Offer memory, search and the provider's tools to any program that speaks MCP."""
    if show_token or new_token:
        _print_token(invocation, new=new_token)
        return
    signal.signal(signal.SIGTERM, _exit_on_signal)
    if over_http:
        _serve_http(invocation, port, bare)
    else:
        _serve_stdio(invocation, bare)


def _exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Exits with code 0: SIGTERM is how a server usually ends, and every answered write is on disk."""
    raise SystemExit(0)


def _print_token(invocation: Invocation, *, new: bool) -> None:
    from memoranda.integrations.mcp.http_server import TOKEN_VARIABLE, load_or_create_token  # noqa: PLC0415

    token = load_or_create_token(invocation.locate_home(), new=new)
    invocation.respond(token, {"name": TOKEN_VARIABLE, "token": token, "header": f"Authorization: Bearer {token}"})


@contextmanager
def _open_tool_host(invocation: Invocation, *, directory: str = "") -> Iterator[ToolHost]:
    """Opens the home of this command for a program that works in `directory`, and closes it afterwards."""
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
            yield tool_host
        finally:
            tool_host.wait_for_start()


def _current_directory() -> str:
    """Returns the directory in which the host started us, usually the one it works in; "" if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _serve_stdio(invocation: Invocation, bare: bool) -> None:
    if sys.stdin.isatty():
        text = "Waiting for an MCP client on standard input; Ctrl-D stops the server. See 'memoranda mcp --help'."
        click.echo(text, err=True)
    with _open_tool_host(invocation, directory=_current_directory()) as tool_host:
        source, sink = claim_standard_streams()
        tool_host.start_in_background()
        McpStdioServer(McpServer(tool_host, bare=bare), source, sink).serve()


def _serve_http(invocation: Invocation, port: int, bare: bool) -> None:
    # Hosts start the stdio server with every session, so it must not load the HTTP server.
    from memoranda.integrations.mcp.http_server import TOKEN_VARIABLE, McpHttpServer, load_or_create_token  # noqa: PLC0415

    home = invocation.locate_home()
    with _open_tool_host(invocation) as tool_host:
        token = load_or_create_token(home)
        try:
            http_server = McpHttpServer(McpServer(tool_host, one_client=False, bare=bare), token, port)
        except OSError as error:
            invocation.fail(f"Port {port} cannot be used: {error.strerror}. --port 0 chooses a free one.")
        with http_server:
            tool_host.start_in_background()
            text = f"Listening on {http_server.url}; 'memoranda mcp --token' prints the token, Ctrl-C stops the server."
            token_location = f"{TOKEN_VARIABLE} in {home.secrets_file}"
            invocation.respond(text, {"url": http_server.url, "token": token_location, "pid": os.getpid()})
            sys.stdout.flush()
            http_server.serve_forever()


def _heard_words(memory: Memory) -> list[str]:
    from memoranda.integrations.user_words import heard_words  # noqa: PLC0415

    return heard_words(memory)
