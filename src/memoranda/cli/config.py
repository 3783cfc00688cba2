"""`memoranda config`, `secret` and `profile`: the settings, API keys and profiles of a home.

Keys are in `.env`, by name; a value is never printed. Profiles are several memories side by side in one home.
"""

import sys

import click

from memoranda.cli.completion import complete_setting
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.open_home import warn_of_unknown_keys
from memoranda.home import config
from memoranda.home.config import locate_home

_EPILOG = """\b
Examples:
  memoranda config list
  memoranda config get memory.memory_char_limit
  memoranda config set memory.write_approval propose
  memoranda config unset memory.write_approval
"""
_SECRET_EPILOG = """\b
Examples:
  memoranda secret set OPENAI_API_KEY
  echo "$KEY" | memoranda secret set OPENAI_API_KEY
  memoranda secret list
"""
_PROFILE_EPILOG = """\b
Examples:
  memoranda profile list
  memoranda --profile work memory add "The work repository is a monorepo."
"""


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """See and change the settings in config.yaml. Environment variables override the file."""


@command.command("list")
@common_options
def list_settings(invocation: Invocation) -> None:
    """Show every setting with its value, its environment variable and what it means."""
    loaded = config.load(invocation.locate_home())
    warn_of_unknown_keys(loaded)
    rows = [(key, config.shown_value(config.value_of(loaded, key))) for key in config.KEYS]
    text = "\n".join(f"{key.name} = {_format_value(value)}\n    {key.meaning} ({key.variable})" for key, value in rows)
    invocation.respond(text, {key.name: value for key, value in rows})


@command.command()
@click.argument("name", shell_complete=complete_setting)
@common_options
def get(invocation: Invocation, name: str) -> None:
    """Show one setting, or all of a section, such as memory."""
    section = [key for key in config.KEYS if key.name.startswith(f"{name}.")]
    keys = section or [config.find_key(name)]
    loaded = config.load(invocation.locate_home())
    warn_of_unknown_keys(loaded)
    values = {key.name: config.shown_value(config.value_of(loaded, key)) for key in keys}
    lines = [f"{key} = {_format_value(value)}" for key, value in values.items()]
    invocation.respond("\n".join(lines) if section else _format_value(values[name]), values)


@command.command("set")
@click.argument("name", shell_complete=complete_setting)
@click.argument("value")
@common_options
def set_setting(invocation: Invocation, name: str, value: str) -> None:
    """Change one setting in config.yaml; comments and other keys do not change."""
    home = invocation.locate_home()
    stored = config.shown_value(config.set_value(home, name, value))
    warn_of_unknown_keys(config.load(home))
    invocation.respond(f"{name} = {_format_value(stored)}  ({home.config_file})", {"success": True, name: stored})


@command.command()
@click.argument("name", shell_complete=complete_setting)
@common_options
def unset(invocation: Invocation, name: str) -> None:
    """Remove one setting from config.yaml, so that its default applies."""
    home = invocation.locate_home()
    removed = config.unset_value(home, name)
    value = config.shown_value(config.value_of(config.load(home), config.find_key(name)))
    text = f"{name} = {_format_value(value)}" if removed else f"{name} is not set in {home.config_file}."
    invocation.respond(text, {"success": True, "removed": removed, name: value})


@command.command()
@common_options
def path(invocation: Invocation) -> None:
    """Show the path of config.yaml."""
    home = invocation.locate_home()
    invocation.respond(str(home.config_file), {"path": str(home.config_file), "exists": home.config_file.exists()})


def _format_value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@click.group(epilog=_SECRET_EPILOG)
@common_options
def secret() -> None:
    """Store API keys in the home's .env file, which only you can read. Values are never printed."""


@secret.command("list")
@common_options
def list_secrets(invocation: Invocation) -> None:
    """Show the names of the stored secrets."""
    names = sorted(config.read_secrets(invocation.locate_home()))
    invocation.respond("\n".join(names) or "No secrets are stored.", {"names": names})


@secret.command("set")
@click.argument("name")
@common_options
def set_secret(invocation: Invocation, name: str) -> None:
    """Store a secret. The command prompts for it without echo, or reads it from a pipe."""
    value = click.prompt(name, hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not value:
        invocation.fail(f"The value of {name} is empty. Nothing was written.")
    home = invocation.locate_home()
    config.set_secret(home, name, value)
    invocation.respond(f"Stored {name} in {home.secrets_file}.", {"success": True, "name": name})


@secret.command()
@click.argument("name")
@common_options
def remove(invocation: Invocation, name: str) -> None:
    """Delete a secret."""
    if not config.remove_secret(invocation.locate_home(), name):
        invocation.fail(f"There is no secret {name}.")
    invocation.respond(f"Removed {name}.", {"success": True, "name": name})


@click.group(epilog=_PROFILE_EPILOG)
@common_options
def profile() -> None:
    """Profiles have separate memories, settings and secrets. --profile NAME uses one; the first write creates it."""


@profile.command("list")
@common_options
def list_profiles(invocation: Invocation) -> None:
    """Show the profiles of the home and their directories."""
    base = locate_home(invocation.home, "default")
    directories = {name: str(locate_home(base.root, name).root) for name in base.profiles()}
    text = "\n".join(f"{name}  {directory}" for name, directory in directories.items())
    invocation.respond(text, {"profiles": directories})
