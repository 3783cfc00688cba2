"""`memoranda install`: give memory to a program that people already work in."""

from pathlib import Path

import click

from memoranda.cli.completers import complete_host
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.hosts.host_environment import host_environment, launch_command
from memoranda.cli.hosts.host_states import find_hosts
from memoranda.cli.hosts.install_steps import apply_with_consent, find_host, host_options
from memoranda.integrations.hosts.host import HOME_OPTION
from memoranda.integrations.hosts.install_plan import plan_install

_EPILOG = """\b
Examples:
  memoranda install                      list the programs, and where memory is installed
  memoranda install claude-code          the server and the hooks
  memoranda install codex --dry-run
  memoranda install vscode --project .   for everyone who works on this project
"""
_SHARED_ENTRY_HOME = (
    "The entry that the project shares names no home, because other people have their own: the server uses "
    "MEMORANDA_HOME, else ~/.memoranda."
)


@click.command(epilog=_EPILOG)
@click.argument("host", required=False, shell_complete=complete_host)
@host_options
@memory_options
def command(host: str | None, project: Path | None, dry_run: bool, yes: bool) -> None:
    """Give memory to HOST: claude-code, codex, hermes, openclaw, cursor, gemini-cli, opencode, vscode, claude-desktop.

    Shows the change first and asks. Everything else in the settings keeps its bytes, comments included, and each file
    is backed up to the home first. Claude Code, Codex, Gemini CLI, OpenCode and Cursor also get hooks, which give the
    model its memory at the start of a session, add relevant evidence to a prompt, and record every session. Hermes and
    OpenClaw get a plugin that does the same.
    """
    invocation = Invocation.current()
    invocation.locate_home().refuse_if_foreign()
    project = None if project is None else project.absolute()
    if host is None:
        _list_hosts(invocation, project)
        return
    target = find_host(invocation, host, project)
    command = launch_command(invocation)
    changes = plan_install(target, host_environment(project), command)
    omits_home = project is not None and HOME_OPTION in command.options
    next_step = f"{target.next_step} {_SHARED_ENTRY_HOME}" if omits_home else target.next_step
    apply_with_consent(invocation, target, changes, dry_run=dry_run, yes=yes, verb="Wrote", next_step=next_step)


def _list_hosts(invocation: Invocation, project: Path | None) -> None:
    states = find_hosts(invocation, project)
    lines = [
        f"{item.host.name:<15} {item.state if item.present else 'not found on this machine':<26} {item.files[0]}"
        for item in states
    ]
    invocation.respond("\n".join(lines), {"hosts": [item.as_json() for item in states]})
