"""`memoranda profile`: several memories side by side in one home."""

import click

from memoranda.cli.context import Invocation, common_options
from memoranda.home.config import locate_home

_EPILOG = """\b
Examples:
  memoranda profile list
  memoranda --profile work memory add "The work repository is a monorepo."
"""


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """Profiles have separate memories, settings and secrets. --profile NAME uses one; the first write creates it."""


@command.command("list")
@common_options
def list_profiles() -> None:
    """Show the profiles of the home and their directories."""
    invocation = Invocation.current()
    base = locate_home(invocation.home, "default")
    directories = {name: str(locate_home(base.root, name).root) for name in base.profiles()}
    text = "\n".join(f"{name}  {directory}" for name, directory in directories.items())
    invocation.respond(text, {"profiles": directories})
