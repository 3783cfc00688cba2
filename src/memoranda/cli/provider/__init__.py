"""`memoranda provider`: choose, configure, inspect and test the external memory."""

import click

from memoranda.cli.context import common_options
from memoranda.cli.provider import ask, forget, run, setup, status, test

_EPILOG = """\b
Examples:
  memoranda provider list
  memoranda provider setup holographic
  memoranda provider status
  memoranda provider ask "which database do we use?"
  memoranda provider off
"""


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """Show, set up, test, clear and switch off the external memory."""


for _subcommand in (*status.COMMANDS, *setup.COMMANDS, *test.COMMANDS, *ask.COMMANDS, *forget.COMMANDS, *run.COMMANDS):
    command.add_command(_subcommand)
