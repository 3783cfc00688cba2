"""Output of commands that run a provider's code: only the command's answer goes to standard output.

What the provider prints, from Python, from a library or from a program that it starts, goes to standard error, so that
JSON output stays valid.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from functools import wraps
from typing import Any

from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError
from memoranda.external.loading.discovery import DiscoveredProvider, discover, find_by_name
from memoranda.external.loading.loader import Inspection, inspect_provider
from memoranda.external.outbox.outbox import Outbox
from memoranda.home import config
from memoranda.support.home import Home
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.suggestions import did_you_mean

BUILT_IN = "built-in only"


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The answer of a command, as text and as JSON data; `ok` is False for a failure."""

    text: str
    data: dict[str, Any]
    ok: bool = True


def provider_command(run: Callable[..., CommandOutput]) -> Callable[..., None]:
    """Make a command from a function that returns its output; a ProviderError becomes a failure."""

    @wraps(run)
    def command(invocation: Invocation, **arguments: Any) -> None:
        try:
            with stdout_to_stderr():
                output = run(invocation, **arguments)
        except ProviderError as error:
            invocation.fail(terminal_line(str(error)))
        if output.ok:
            invocation.respond(output.text, output.data)
        else:
            invocation.fail(output.text, output.data)

    return command


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send everything that is printed in the block to standard error."""
    sys.stdout.flush()
    try:
        stdout = os.dup(1)
        os.dup2(2, 1)
    except OSError:
        # One of the two is closed, so there is nothing to separate.
        with redirect_stdout(sys.stderr):
            yield
        return
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def owned_home(invocation: Invocation) -> Home:
    """Return the home of the command; raises when another program owns it."""
    home = invocation.locate_home()
    home.refuse_if_foreign()
    return home


def providers_in_use(home: Home) -> tuple[str, ...]:
    return config.load(home).providers


def require_in_use(home: Home, name: str | None = None) -> tuple[str, ...]:
    """Return the providers in use, or the one that the user names; raises if there is none."""
    in_use = (name,) if name else providers_in_use(home)
    if not in_use:
        raise ProviderError("No provider is in use. 'memoranda provider setup' chooses one.")
    return in_use


def require_one(home: Home, name: str | None, how_to_name: str) -> str:
    """Return the provider in use, or the one that the user names; raises if there is none, or more than one."""
    in_use = (name,) if name else providers_in_use(home)
    if len(in_use) == 1:
        return in_use[0]
    state = f"{_join(in_use)} are in use." if in_use else "No provider is in use."
    raise ProviderError(f"{state} Name one: {how_to_name}.")


def use_providers(home: Home, names: Sequence[str]) -> None:
    """Use exactly these providers from the next session on. Other programs read only `memory.provider`."""
    settings: dict[str, Any] = {"memory.provider": names[0] if names else ""}
    if len(names) > 1 or "providers" in (config.read_document(home).get("memory") or {}):
        settings["memory.providers"] = list(names) if len(names) > 1 else []
    config.set_values(home, settings)


def describe_use(names: Sequence[str], replaced: Sequence[str] = ()) -> tuple[str, dict[str, Any]]:
    """Say which providers are used from now on, and which no longer, as text and as data."""
    data: dict[str, Any] = {"in_use": list(names)} if len(names) > 1 or replaced else {}
    text = f"{_join(names)} {'is' if len(names) == 1 else 'are'} used from the next session on"
    if replaced:
        text += f", instead of {_join(replaced)}"
        data["replaced"] = list(replaced)
    return text, data


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def open_outbox(home: Home) -> "closing[Outbox]":
    return closing(Outbox(home.root, server_url=config.server_url(home)))


def find_provider(home: Home, name: str) -> DiscoveredProvider:
    chosen = find_by_name(home.root, name)
    if chosen is None:
        found = discover(home.root)
        raise ProviderError(
            f"There is no provider {name!r}.{did_you_mean(name, found)} There are: {', '.join(found) or 'none'}."
        )
    return chosen


def inspect_in_home(home: Home, found: DiscoveredProvider, saved: dict[str, Any]) -> Inspection:
    """Load a provider with the settings and secrets of a home; raises ProviderError."""
    external = config.load(home).external
    return inspect_provider(found, home.root, saved, lambda names: config.export_secrets(home, names), external)
