"""`memoranda provider`: choose, configure, inspect and test the external memory; loads only what is called."""

from importlib import import_module

import click

from memoranda.cli.context import common_options

# The modules of the commands. Those that run sessions take a second to load, and `list` needs none of them.
_MODULES = {
    "list": "status",
    "status": "status",
    "use": "setup",
    "off": "setup",
    "setup": "setup",
    "test": "sessions",
    "ask": "sessions",
    "call": "sessions",
    "retry": "sessions",
    "forget": "forget",
    "run": "sessions",
}
_EPILOG = """\b
Examples:
  memoranda provider list
  memoranda provider setup holographic
  memoranda provider status
  memoranda provider ask "which database do we use?"
  memoranda provider off
"""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        commands: tuple[click.Command, ...] = import_module(f"{__name__}.{_MODULES[cmd_name]}").COMMANDS
        return next(command for command in commands if command.name == cmd_name)


@click.group(cls=_LazyGroup, epilog=_EPILOG)
@common_options
def command() -> None:
    """Show, set up, test, clear and switch off the external memory."""
