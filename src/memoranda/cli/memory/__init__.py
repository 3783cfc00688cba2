"""`memoranda memory`: see and change the curated memory of an agent."""

import click

from memoranda.cli.context import memory_options
from memoranda.cli.memory import approval, entries, history

_EPILOG = """\b
Examples:
  memoranda memory list
  memoranda memory add "CI runs on Debian 12."
  memoranda memory replace "Debian 12" "CI runs on Debian 13."
  memoranda memory remove "CI runs"
  memoranda memory log
  memoranda memory undo 3
"""


@click.group(epilog=_EPILOG)
@memory_options
def command() -> None:
    """See and change MEMORY.md (the agent's notes) and USER.md (the user's profile).

    Every change is checked like the agent's own changes, and can be undone.
    """


for _subcommand in (*entries.COMMANDS, *history.COMMANDS, *approval.COMMANDS):
    command.add_command(_subcommand)
