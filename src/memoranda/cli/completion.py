"""`memoranda completion`: the script that lets a shell complete commands, options, hosts, sessions and providers."""

import click
from click.shell_completion import get_completion_class

from memoranda.cli.context import Invocation, common_options

_EPILOG = """\b
Examples:
  memoranda completion bash > ~/.local/share/bash-completion/completions/memoranda
  memoranda completion zsh  > "${fpath[1]}/_memoranda"
  memoranda completion fish > ~/.config/fish/completions/memoranda.fish
\b
For this shell only:
  source <(memoranda completion bash)
"""
_PROGRAM, _VARIABLE = "memoranda", "_MEMORANDA_COMPLETE"


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
def command(shell: str) -> None:
    """Print the completion script for a shell.

    It completes commands, options and their values, the programs to import from and install into, settings, providers,
    profiles, and sessions by the beginning of their id or title.
    """
    invocation = Invocation.current()
    script_class = get_completion_class(shell)
    assert script_class is not None
    script = script_class(click.get_current_context().find_root().command, {}, _PROGRAM, _VARIABLE).source()
    invocation.respond(script, {"success": True, "shell": shell, "script": script})
