"""How a command that runs a provider's code answers: the answer alone is on standard output.

Whatever the provider prints meanwhile, from Python, from a library or from a program that it starts, goes to standard
error, so that JSON stays JSON.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import wraps
from typing import Any

from memoranda import config
from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError
from memoranda.providers.discovery import DiscoveredProvider, discover
from memoranda.providers.inspect_provider import Inspection, inspect_provider
from memoranda.support.home import Home

BUILT_IN = "built-in only"


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """An answer, in words and as data; `ok` is False for one that ends with an exit code."""

    text: str
    data: dict[str, Any]
    ok: bool = True


def provider_command(run: Callable[..., CommandOutput]) -> Callable[..., None]:
    """Make a function that returns an answer into a command; a ProviderError is an answer too."""

    @wraps(run)
    def command(**given: Any) -> None:
        invocation = Invocation.current()
        try:
            with stdout_to_stderr():
                told = run(invocation, **given)
        except ProviderError as error:
            invocation.fail(terminal_line(str(error)))
        if told.ok:
            invocation.respond(told.text, told.data)
        else:
            invocation.fail(told.text, told.data)

    return command


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Let everything that is printed here go to standard error."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:
        # One of them is closed; there is nothing to keep apart.
        with redirect_stdout(sys.stderr):
            yield
        return
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def owned_home(invocation: Invocation) -> Home:
    """The home that was named, unless another program owns it."""
    home = invocation.locate_home()
    home.refuse_if_foreign()
    return home


def active_provider(home: Home) -> str:
    return config.load(home).provider


def find_provider(home: Home, name: str) -> DiscoveredProvider:
    found = discover(home.root)
    if name not in found:
        raise ProviderError(f"There is no provider {name!r}. There are: {', '.join(found) or 'none'}.")
    return found[name]


def inspect_in_home(home: Home, found: DiscoveredProvider, saved: dict[str, Any]) -> Inspection:
    """A provider as a command sees it; raises ProviderError when it cannot be had in time."""
    external = config.load(home).external
    return inspect_provider(found, home.root, saved, lambda names: config.export_secrets(home, names), external)
