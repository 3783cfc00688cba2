"""`memoranda profile`: several memories side by side in one home."""

import click

from memoranda.cli.context import Invocation, common_options
from memoranda.config import locate_home

_EPILOG = """\b
Examples:
  memoranda profile list
  memoranda --profile work memory add "The work repository is a monorepo."
"""


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """Profiles keep separate memories, settings and secrets; --profile NAME uses one, the first write makes it."""


@command.command("list")
@common_options
def list_profiles() -> None:
    """Show the profiles of the home and where they lie."""
    invocation = Invocation.current()
    base = locate_home(invocation.home, "default")
    places = {name: str(locate_home(base.root, name).root) for name in base.profiles()}
    text = "\n".join(f"{name}  {place}" for name, place in places.items())
    invocation.respond(text, {"profiles": places})
