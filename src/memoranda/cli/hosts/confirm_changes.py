"""How an installation goes: show the change, ask, keep a copy, make it, say what is left to do."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from memoranda.adapters.hosts.host import Host
from memoranda.adapters.hosts.settings_change import HostFileChange, apply_changes
from memoranda.adapters.hosts.supported_hosts import HOSTS
from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import bold
from memoranda.safety.redaction import Redactor

_Command = TypeVar("_Command", bound=Callable[..., Any])


def host_options(command: _Command) -> _Command:
    """Give a command the options that installing and uninstalling share."""
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
    """The host of this name, or why there is none."""
    host = HOSTS.get(name)
    if host is None:
        invocation.fail(f"{name!r} is not a host that is known. There are: {', '.join(HOSTS)}.")
    if project is not None and not host.has_projects:
        invocation.fail(f"{host.title} has no settings for single projects; leave --project out.")
    return host


def apply_with_consent(
    invocation: Invocation,
    host: Host,
    changes: Sequence[HostFileChange],
    *,
    dry_run: bool,
    yes: bool,
    done: str,
    then: str,
) -> None:
    """Show the changes and, with consent, make them; each file is backed up first."""
    shown = [_shown(change) for change in changes]
    data: dict[str, Any] = {"success": True, "host": host.name, "applied": False}
    data["changes"] = [
        {"file": str(change.file), "new": change.before is None, "diff": diff}
        for change, diff in zip(changes, shown, strict=True)
    ]
    if not changes:
        invocation.respond(f"Nothing to do: {host.title} is as it should be.", data)
        return
    if dry_run or not (yes or _agreed(invocation, shown)):
        invocation.respond("" if _asks(invocation) and not dry_run else _preview(shown), data)
        return
    backups = invocation.locate_home().root / "host-backups" / host.name
    kept = apply_changes(changes, backups)
    for entry, backup in zip(data["changes"], kept, strict=True):
        entry["backup"] = None if backup is None else str(backup)
    data |= {"applied": True, "then": then}
    lines = [f"{done} {change.file}" for change in changes]
    lines += [f"  as it was before: {backup}" for backup in kept if backup is not None]
    invocation.respond("\n".join([*lines, then]), data)


def _shown(change: HostFileChange) -> str:
    """The difference, without credentials that happen to stand near it."""
    return Redactor().text(change.diff())[0]


def _asks(invocation: Invocation) -> bool:
    return not invocation.as_json and sys.stdin.isatty()


def _agreed(invocation: Invocation, shown: Sequence[str]) -> bool:
    if not _asks(invocation):
        return False
    click.echo("\n\n".join(shown))
    return click.confirm("Write this?", default=True)


def _preview(shown: Sequence[str]) -> str:
    return "\n\n".join([*shown, bold("Nothing was written. Add --yes to write this.")])
