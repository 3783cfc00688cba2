"""`memoranda config`: the settings of a home."""

import click

from memoranda import config
from memoranda.cli.context import Invocation, common_options

_EPILOG = """\b
Examples:
  memoranda config list
  memoranda config get memory.memory_char_limit
  memoranda config set memory.write_approval propose
"""


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """See and change the settings in config.yaml. Environment variables override the file."""


@command.command("list")
@common_options
def list_settings() -> None:
    """Show every setting with its value, its environment variable and what it means."""
    invocation = Invocation.current()
    loaded = config.load(invocation.locate_home())
    rows = [(key, config.value_of(loaded, key)) for key in config.KEYS]
    text = "\n".join(f"{key.name} = {_format_value(value)}\n    {key.meaning} ({key.variable})" for key, value in rows)
    invocation.respond(text, {key.name: value for key, value in rows})


@command.command()
@click.argument("name")
@common_options
def get(name: str) -> None:
    """Show one setting."""
    invocation = Invocation.current()
    value = config.value_of(config.load(invocation.locate_home()), config.find_key(name))
    invocation.respond(_format_value(value), {name: value})


@command.command("set")
@click.argument("name")
@click.argument("value")
@common_options
def set_setting(name: str, value: str) -> None:
    """Change one setting in config.yaml; comments and other keys stay as they are."""
    invocation = Invocation.current()
    home = invocation.locate_home()
    stored = config.set_value(home, name, value)
    invocation.respond(f"{name} = {_format_value(stored)}  ({home.config_file})", {"success": True, name: stored})


@command.command()
@common_options
def path() -> None:
    """Show the path of config.yaml."""
    invocation = Invocation.current()
    home = invocation.locate_home()
    invocation.respond(str(home.config_file), {"path": str(home.config_file), "exists": home.config_file.exists()})


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
