"""`memoranda config`: the settings of a home."""

import click

from memoranda.cli.completers import complete_setting
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.open_home import warn_of_unknown_keys
from memoranda.home import config

_EPILOG = """\b
Examples:
  memoranda config list
  memoranda config get memory.memory_char_limit
  memoranda config set memory.write_approval propose
  memoranda config unset memory.write_approval
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
    warn_of_unknown_keys(loaded)
    rows = [(key, config.shown_value(config.value_of(loaded, key))) for key in config.KEYS]
    text = "\n".join(f"{key.name} = {_format_value(value)}\n    {key.meaning} ({key.variable})" for key, value in rows)
    invocation.respond(text, {key.name: value for key, value in rows})


@command.command()
@click.argument("name", shell_complete=complete_setting)
@common_options
def get(name: str) -> None:
    """Show one setting."""
    invocation = Invocation.current()
    key = config.find_key(name)
    loaded = config.load(invocation.locate_home())
    warn_of_unknown_keys(loaded)
    value = config.shown_value(config.value_of(loaded, key))
    invocation.respond(_format_value(value), {name: value})


@command.command("set")
@click.argument("name", shell_complete=complete_setting)
@click.argument("value")
@common_options
def set_setting(name: str, value: str) -> None:
    """Change one setting in config.yaml; comments and other keys do not change."""
    invocation = Invocation.current()
    home = invocation.locate_home()
    stored = config.shown_value(config.set_value(home, name, value))
    warn_of_unknown_keys(config.load(home))
    invocation.respond(f"{name} = {_format_value(stored)}  ({home.config_file})", {"success": True, name: stored})


@command.command()
@click.argument("name", shell_complete=complete_setting)
@common_options
def unset(name: str) -> None:
    """Remove one setting from config.yaml, so that its default applies."""
    invocation = Invocation.current()
    home = invocation.locate_home()
    removed = config.unset_value(home, name)
    value = config.shown_value(config.value_of(config.load(home), config.find_key(name)))
    text = f"{name} = {_format_value(value)}" if removed else f"{name} is not set in {home.config_file}."
    invocation.respond(text, {"success": True, "removed": removed, name: value})


@command.command()
@common_options
def path() -> None:
    """Show the path of config.yaml."""
    invocation = Invocation.current()
    home = invocation.locate_home()
    invocation.respond(str(home.config_file), {"path": str(home.config_file), "exists": home.config_file.exists()})


def _format_value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
