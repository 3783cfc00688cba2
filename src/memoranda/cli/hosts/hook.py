"""`memoranda hook`, which a host runs at its events, and `memoranda hook status`, which lists the results.

`memoranda.__main__` answers the calls of an installed hook before click is loaded. This module handles the other
calls: the help, calls that people type, and malformed arguments.
"""

import os
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.hosts.hook_call import run
from memoranda.cli.hosts.hook_options import HookOptions
from memoranda.cli.hosts.hook_status import status
from memoranda.integrations.hooks.events import HOSTS

_EPILOG = """\b
Examples:
  memoranda hook claude-code SessionStart < payload.json
  memoranda hook status
  memoranda hook status --why

\b
'memoranda install claude-code' writes this command into the host's settings. To see what a prompt would receive:
  echo '{"prompt": "How did we fix the build?"}' | memoranda hook claude-code UserPromptSubmit
"""
_IGNORE_UNKNOWN = {"ignore_unknown_options": True, "allow_extra_args": True}


class _SilentCommand(click.Command):
    """A command that exits silently with code 0 on invalid options, because any other code would stop the host."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError:
            raise click.exceptions.Exit(0) from None


class _HookGroup(_SilentCommand, click.Group):
    """Accepts any first word as a subcommand, so that an unknown host does not fail either."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        return name, self.commands.get(name, _event_command(name)), args[1:]


@click.group(cls=_HookGroup, epilog=_EPILOG, invoke_without_command=True, context_settings=_IGNORE_UNKNOWN)
@memory_options
@click.pass_context
def command(context: click.Context) -> None:
    """Answer an event of a host (claude-code, codex, gemini-cli ...), or show what its prompts received.

    The host sends its payload on standard input. SessionStart returns the memory. UserPromptSubmit returns earlier
    conversations that are relevant to the prompt, if there are any. Stop, SubagentStop, PreCompact and SessionEnd
    record the session. The exit code is always 0, because any other code would stop the host; errors are in
    logs/hooks.log in the home, and 'memoranda hook status' shows the result of each call.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _event_command(host: str) -> click.Command:
    @click.command(host, cls=_SilentCommand, context_settings=_IGNORE_UNKNOWN, short_help=f"Answer an event of {host}.")
    @click.argument("event", default="")
    @click.option("--wait", is_flag=True, help="Answer and import before exiting, however long it takes.")
    @click.option("--transcript", default="", hidden=True)
    @click.option("--session", default="", hidden=True)
    @memory_options
    def answer(event: str, wait: bool, transcript: str, session: str) -> None:
        invocation = Invocation.current()
        options = HookOptions(host, event, wait=wait, transcript=transcript)
        options.home, options.profile, options.user = invocation.home, invocation.profile, invocation.user
        options.session = session
        if not run(options):
            # The thread that is late only reads, and the next update of the index continues where this one stopped.
            os._exit(0)

    answer.help = f"Answer an EVENT of {host}; the host sends its payload on standard input."
    return answer


for _host in HOSTS:
    command.add_command(_event_command(_host))
command.add_command(status)
