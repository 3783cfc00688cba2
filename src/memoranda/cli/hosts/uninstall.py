"""`memoranda uninstall`: take memory out of a program again."""

from pathlib import Path

import click

from memoranda.adapters.hosts.install_plan import plan_uninstall
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.hosts.confirm_changes import apply_with_consent, find_host, host_options
from memoranda.cli.hosts.host_environment import host_environment

_EPILOG = """\b
Examples:
  memoranda uninstall claude-code
  memoranda uninstall cursor --project . --yes
"""


@click.command(epilog=_EPILOG)
@click.argument("host")
@host_options
@memory_options
def command(host: str, project: Path | None, dry_run: bool, yes: bool) -> None:
    """Take what 'memoranda install' wrote out of HOST's settings; memory itself stays where it is."""
    invocation = Invocation.current()
    invocation.locate_home().refuse_if_foreign()
    project = None if project is None else project.absolute()
    there = find_host(invocation, host, project)
    changes = plan_uninstall(there, host_environment(project))
    then = f"{there.title} forgets it with its next start."
    apply_with_consent(invocation, there, changes, dry_run=dry_run, yes=yes, done="Took Memoranda out of", then=then)
