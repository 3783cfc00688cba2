"""`memoranda mcp`: serve a home to a host, over standard input and output or over HTTP on this machine."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

import click

from memoranda.adapters.mcp.offers import Offers, open_for_hosts
from memoranda.adapters.mcp.server import Server
from memoranda.adapters.mcp.stdio import StdioServer, take_over
from memoranda.adapters.mcp.token import NAME, token_of
from memoranda.cli.context import Invocation, memory_options
from memoranda.support.projects import project_of

_EPILOG = """\b
Examples:
  memoranda mcp                        started by a host, such as Claude Code
  memoranda mcp --user ana             with the memory of one user of a gateway
  memoranda mcp --http --port 8931     for hosts that connect to an address
  memoranda mcp --token                print what such a host has to send

\b
A host that starts servers by itself needs no more than this:
  {"mcpServers": {"memoranda": {"command": "memoranda", "args": ["mcp"]}}}
"""
_PORT = 8931


@click.command(epilog=_EPILOG)
@click.option("--http", "over_http", is_flag=True, help="Listen on the loopback address instead.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True,
              help="Where to listen; 0 chooses a free one.")  # fmt: skip
@click.option("--bare", is_flag=True, help="Leave what is remembered out of the instructions (hooks give it already).")
@click.option("--token", "show_token", is_flag=True, help="Print the token for HTTP, and serve nothing.")
@click.option("--new-token", is_flag=True, help="Replace the token for HTTP, print it, and serve nothing.")
@memory_options
def command(over_http: bool, port: int, bare: bool, show_token: bool, new_token: bool) -> None:
    """Offer memory, search and the provider's tools to any program that speaks MCP."""
    invocation = Invocation.current()
    if show_token or new_token:
        _print_token(invocation, new=new_token)
        return
    signal.signal(signal.SIGTERM, _leave)
    if over_http:
        _serve_http(invocation, port, bare)
    else:
        _serve_stdio(invocation, bare)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Being told to stop is the usual end of a server; whatever was answered is on disk."""
    raise SystemExit(0)


def _print_token(invocation: Invocation, *, new: bool) -> None:
    token = token_of(invocation.place(), new=new)
    invocation.say(token, {"name": NAME, "token": token, "header": f"Authorization: Bearer {token}"})


@contextmanager
def _offering(invocation: Invocation, *, directory: str = "") -> Iterator[Offers]:
    """What the home that was named has to offer in a directory; nothing of it is left running afterwards."""
    memory = open_for_hosts(invocation.home, profile=invocation.profile, user=invocation.user)
    with memory, suppress(KeyboardInterrupt):
        offers = Offers(memory, here=lambda: project_of(directory))
        try:
            yield offers
        finally:
            offers.settle()


def _present_directory() -> str:
    """Where the host works, which is where most of them start us; "" when that is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _serve_stdio(invocation: Invocation, bare: bool) -> None:
    if sys.stdin.isatty():
        click.echo("Waiting for a host to speak MCP here; Ctrl-D ends it. 'memoranda mcp --help' says more.", err=True)
    with _offering(invocation, directory=_present_directory()) as offers:
        source, sink = take_over()
        offers.begin()
        StdioServer(Server(offers, bare=bare), source, sink).serve()


def _serve_http(invocation: Invocation, port: int, bare: bool) -> None:
    # Whoever is started over and over, for one host each, does not load what only this needs.
    from memoranda.adapters.mcp.loopback import LoopbackServer  # noqa: PLC0415

    place = invocation.place()
    with _offering(invocation) as offers:
        token = token_of(place)
        try:
            listening = LoopbackServer(Server(offers, lasting=False, bare=bare), token, port)
        except OSError as error:
            invocation.refuse(f"Port {port} cannot be used: {error.strerror}. --port 0 chooses a free one.")
        with listening:
            offers.begin()
            words = f"Listening on {listening.url}; 'memoranda mcp --token' prints the token, Ctrl-C ends it."
            stored = f"{NAME} in {place.secrets_file}"
            invocation.say(words, {"url": listening.url, "token": stored, "pid": os.getpid()})
            sys.stdout.flush()
            listening.serve_forever()
