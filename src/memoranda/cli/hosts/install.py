"""`memoranda install` and `uninstall`: give memory to a program that people already work in, and remove it.

Both show the changes, ask, back the files up, and write them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from memoranda.cli.completion import complete_host
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.hosts.found_hosts import find_hosts, host_environment, launch_command
from memoranda.cli.terminal_text import bold
from memoranda.integrations.hosts.host import HOME_OPTION, Host
from memoranda.integrations.hosts.install_plan import plan_install, plan_uninstall
from memoranda.integrations.hosts.settings_change import CreatedFiles, HostFileChange, SettingsBackups, apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS
from memoranda.safety.redaction import Redactor
from memoranda.support.suggestions import did_you_mean

_Command = TypeVar("_Command", bound=Callable[..., Any])
_INSTALL_EPILOG = """\b
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
_UNINSTALL_EPILOG = """\b
Examples:
  memoranda uninstall claude-code
  memoranda uninstall cursor --project . --yes
"""


def host_options(command: _Command) -> _Command:
    """Adds the options that installing and uninstalling share to a command."""
    options = (
        click.option(
            "--project",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Only for the project in this directory.",
        ),
        click.option("--dry-run", is_flag=True, help="Show what would change; write nothing."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def find_host(invocation: Invocation, name: str, project: Path | None) -> Host:
    """Returns the host of this name; ends the command with an error when it cannot be used."""
    host = HOSTS.get(name)
    if host is None:
        invocation.fail(
            f"Memoranda cannot be installed into {name!r}.{did_you_mean(name, HOSTS)} Supported: {', '.join(HOSTS)}."
        )
    if project is not None and not host.has_projects:
        invocation.fail(f"{host.title} has no settings for single projects; omit --project.")
    return host


def backups_directory(invocation: Invocation, host: Host) -> Path:
    """Returns where the home keeps the previous settings of a host."""
    return invocation.locate_home().root / "host-backups" / host.name


def apply_with_consent(
    invocation: Invocation,
    host: Host,
    changes: Sequence[HostFileChange],
    *,
    dry_run: bool,
    yes: bool,
    verb: str,
    next_step: str,
    backups: bool = True,
) -> None:
    """Shows the changes and, if the user agrees, applies them. `verb` begins the line about each changed file.

    Without `backups`, the copies that exist of the files are removed when the changes are complete.
    """
    diffs = [_redacted_diff(change) for change in changes]
    data: dict[str, Any] = {"success": True, "host": host.name, "applied": False}
    data["changes"] = [
        {"file": str(change.file), "new": change.before is None, "removed": change.after is None, "diff": diff}
        for change, diff in zip(changes, diffs, strict=True)
    ]
    if not changes:
        invocation.respond(f"Nothing to do: the settings of {host.title} need no change.", data)
        return

    def apply() -> None:
        directory = backups_directory(invocation, host)
        copies = apply_changes(changes, directory)
        if not backups:
            SettingsBackups(directory).remove(change.file for change in changes)
            copies = [None] * len(changes)
        for entry, copy in zip(data["changes"], copies, strict=True):
            entry["backup"] = None if copy is None else str(copy)
        lines = [f"{'Deleted' if change.after is None else verb} {change.file}" for change in changes]
        lines += [f"  backup: {copy}" for copy in copies if copy is not None]
        invocation.respond("\n".join([*lines, next_step]), data | {"applied": True, "then": next_step})

    hint = "\n" + bold("Nothing was written. Add --yes to write these changes.")
    planned = PlannedChange("\n\n".join(diffs), data, "Write these changes?", hint)
    confirm_and_run(invocation, planned, apply, dry_run=dry_run, yes=yes)


def _redacted_diff(change: HostFileChange) -> str:
    """Returns the diff without credentials, which its context lines may contain."""
    return Redactor().text(change.diff())[0]


@click.command(epilog=_INSTALL_EPILOG)
@click.argument("host", required=False, shell_complete=complete_host)
@host_options
@memory_options
def command(invocation: Invocation, host: str | None, project: Path | None, dry_run: bool, yes: bool) -> None:
    """Give memory to HOST: claude-code, codex, hermes, openclaw, cursor, gemini-cli, opencode, vscode, claude-desktop.

    Shows the change first and asks. Everything else in the settings keeps its bytes, comments included, and each file
    is backed up to the home first. Claude Code, Codex, Gemini CLI, OpenCode and Cursor also get hooks, which give the
    model its memory at the start of a session, add relevant evidence to a prompt, and record every session. Hermes and
    OpenClaw get a plugin that does the same.
    """
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


@click.command(epilog=_UNINSTALL_EPILOG)
@click.argument("host", shell_complete=complete_host)
@host_options
@memory_options
def uninstall(invocation: Invocation, host: str, project: Path | None, dry_run: bool, yes: bool) -> None:
    """Remove what 'memoranda install' wrote from HOST's settings; the memory itself stays in the home.

    A settings file that the installation created is deleted if nothing else is in it, and so are the backups.
    """
    invocation.locate_home().refuse_if_foreign()
    project = None if project is None else project.absolute()
    target = find_host(invocation, host, project)
    environment, backups = host_environment(project), backups_directory(invocation, target)
    changes = plan_uninstall(target, environment, CreatedFiles(backups), backups)
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
