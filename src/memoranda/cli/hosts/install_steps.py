"""The steps that `install` and `uninstall` share: show the changes, ask, back the files up, and write them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import bold
from memoranda.integrations.hosts.host import Host
from memoranda.integrations.hosts.settings_change import HostFileChange, SettingsBackups, apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS
from memoranda.safety.redaction import Redactor
from memoranda.support.suggestions import did_you_mean

_Command = TypeVar("_Command", bound=Callable[..., Any])


def host_options(command: _Command) -> _Command:
    """Adds the options that installing and uninstalling share to a command."""
    options = (
        click.option(
            "--project",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Only for the project in this directory.",
        ),
        click.option("--dry-run", is_flag=True, help="Show what would change; write nothing."),
        click.option("--yes", is_flag=True, help="Do not ask."),
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
