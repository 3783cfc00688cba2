"""`memoranda install`: put memory into a program that people already work in."""

from pathlib import Path
from typing import Any

import click

from memoranda.adapters.hosts.install_plan import plan_install
from memoranda.adapters.hosts.launch_command import HOME
from memoranda.adapters.hosts.settings_change import SettingsError
from memoranda.adapters.hosts.supported_hosts import HOSTS
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.hosts.confirm_changes import apply_with_consent, find_host, host_options
from memoranda.cli.hosts.host_environment import host_environment, program

_EPILOG = """\b
Examples:
  memoranda install                      which programs there are, and where memory is in
  memoranda install claude-code          the server, and hooks for Claude Code
  memoranda install codex --dry-run
  memoranda install vscode --project .   for everybody who works on this project
"""
_NO_HOME = (
    "The server that the project shares is given no home, because others have theirs elsewhere: it uses "
    "MEMORANDA_HOME, else ~/.memoranda."
)


@click.command(epilog=_EPILOG)
@click.argument("host", required=False)
@host_options
@memory_options
def command(host: str | None, project: Path | None, dry_run: bool, yes: bool) -> None:
    """Put memory into HOST: claude-code, codex, cursor, claude-desktop, vscode, gemini-cli or opencode.

    Shows the change first and asks. What else stands in the settings keeps every byte, comments included; a copy of
    each file as it was is kept in the home. With Claude Code come hooks: what is remembered at the start, evidence on
    a prompt that it bears on, and every session recorded as it goes.
    """
    invocation = Invocation.current()
    invocation.locate_home().refuse_if_foreign()
    project = None if project is None else project.absolute()
    if host is None:
        _show_all(invocation, project)
        return
    there = find_host(invocation, host, project)
    words = program(invocation)
    changes = plan_install(there, host_environment(project), words)
    then = there.then if project is None or HOME not in words.options else f"{there.then} {_NO_HOME}"
    apply_with_consent(invocation, there, changes, dry_run=dry_run, yes=yes, done="Wrote", then=then)


def _show_all(invocation: Invocation, project: Path | None) -> None:
    around, words = host_environment(project), program(invocation)
    rows: list[dict[str, Any]] = []
    for host in HOSTS.values():
        if project is not None and not host.has_projects:
            continue
        files = [str(place.file) for place in host.files(around)]
        try:
            state = "not installed" if plan_install(host, around, words) else "installed"
        except SettingsError as error:
            state = str(error)
        present = any(Path(file).parent.exists() and Path(file).parent != around.person for file in files)
        rows.append({"host": host.name, "title": host.title, "present": present, "state": state, "files": files})
    lines = [
        f"{row['host']:<15} {row['state'] if row['present'] else 'not found on this machine':<26} {row['files'][0]}"
        for row in rows
    ]
    invocation.respond("\n".join(lines), {"hosts": rows})
