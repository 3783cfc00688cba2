"""`memoranda memory`: see and change the curated memory of an agent."""

import click

from memoranda.cli.context import memory_options
from memoranda.cli.lazy_group import LazyGroup

_FUNCTIONS = {
    "add": "memoranda.cli.memory.entries:add",
    "allow": "memoranda.cli.memory.entries:allow",
    "approve": "memoranda.cli.memory.approval:approve",
    "confirm": "memoranda.cli.memory.history:confirm",
    "diff": "memoranda.cli.memory.history:diff",
    "edit": "memoranda.cli.memory.entries:edit",
    "list": "memoranda.cli.memory.entries:list_entries",
    "log": "memoranda.cli.memory.history:log",
    "move": "memoranda.cli.memory.entries:move",
    "pending": "memoranda.cli.memory.approval:pending",
    "purge": "memoranda.cli.memory.history:purge",
    "reject": "memoranda.cli.memory.approval:reject",
    "remove": "memoranda.cli.memory.entries:remove",
    "replace": "memoranda.cli.memory.entries:replace",
    "reset": "memoranda.cli.memory.entries:reset",
    "stale": "memoranda.cli.memory.history:stale",
    "undo": "memoranda.cli.memory.history:undo",
}
_EPILOG = """\b
Examples:
  memoranda memory list
  memoranda memory add "CI runs on Debian 12."
  memoranda memory replace "Debian 12" "CI runs on Debian 13."
  memoranda memory remove "CI runs"
  memoranda memory log
  memoranda memory undo 3
"""


@click.group(cls=LazyGroup, functions=_FUNCTIONS, epilog=_EPILOG)
@memory_options
def command() -> None:
    """See and change MEMORY.md (the agent's notes) and USER.md (the user's profile).

    Every change is checked like the agent's own changes, and can be undone.
    """
