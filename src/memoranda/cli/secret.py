"""`memoranda secret`: API keys in `.env`, by name; a value is never printed."""

import sys

import click

from memoranda.cli.context import Invocation, common_options
from memoranda.home import config

_EPILOG = """\b
Examples:
  memoranda secret set OPENAI_API_KEY
  echo "$KEY" | memoranda secret set OPENAI_API_KEY
  memoranda secret list
"""


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """Store API keys in the home's .env file, which only you can read. Values are never printed."""


@command.command("list")
@common_options
def list_secrets() -> None:
    """Show the names of the stored secrets."""
    invocation = Invocation.current()
    names = sorted(config.read_secrets(invocation.locate_home()))
    invocation.respond("\n".join(names) or "No secrets are stored.", {"names": names})


@command.command("set")
@click.argument("name")
@common_options
def set_secret(name: str) -> None:
    """Store a secret. The command prompts for it without echo, or reads it from a pipe."""
    invocation = Invocation.current()
    value = click.prompt(name, hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not value:
        invocation.fail(f"The value of {name} is empty. Nothing was written.")
    home = invocation.locate_home()
    config.set_secret(home, name, value)
    invocation.respond(f"Stored {name} in {home.secrets_file}.", {"success": True, "name": name})


@command.command()
@click.argument("name")
@common_options
def remove(name: str) -> None:
    """Delete a secret."""
    invocation = Invocation.current()
    if not config.remove_secret(invocation.locate_home(), name):
        invocation.fail(f"There is no secret {name}.")
    invocation.respond(f"Removed {name}.", {"success": True, "name": name})
