"""`memoranda uninstall`: remove memory from a program."""

from pathlib import Path

import click

from memoranda.cli.completers import complete_host
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.hosts.host_environment import host_environment
from memoranda.cli.hosts.install_steps import apply_with_consent, backups_directory, find_host, host_options
from memoranda.integrations.hosts.install_plan import plan_uninstall
from memoranda.integrations.hosts.settings_change import CreatedFiles, SettingsBackups

_EPILOG = """\b
Examples:
  memoranda uninstall claude-code
  memoranda uninstall cursor --project . --yes
"""


@click.command(epilog=_EPILOG)
@click.argument("host", shell_complete=complete_host)
@host_options
@memory_options
def command(host: str, project: Path | None, dry_run: bool, yes: bool) -> None:
    """Remove what 'memoranda install' wrote from HOST's settings; the memory itself stays in the home.

    A settings file that the installation created is deleted if nothing else is in it, and so are the backups.
    """
    invocation = Invocation.current()
    invocation.locate_home().refuse_if_foreign()
    project = None if project is None else project.absolute()
    target = find_host(invocation, host, project)
    environment, backups = host_environment(project), backups_directory(invocation, target)
    changes = plan_uninstall(target, environment, CreatedFiles(backups), backups)
    if not changes and not dry_run:
        # An earlier version kept them.
        SettingsBackups(backups).remove(file.path for file in target.files(environment))
    apply_with_consent(
        invocation,
        target,
        changes,
        dry_run=dry_run,
        yes=yes,
        verb="Removed Memoranda from",
        next_step=f"{target.title} stops using Memoranda when it next starts.",
        backups=False,
    )
