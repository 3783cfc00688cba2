"""`memoranda backup` and `restore`: the whole home in one verified file, and a home out of it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from memoranda.cli.context import EXIT_UNUSABLE, Invocation, common_options
from memoranda.cli.imports.summary_text import format_size
from memoranda.cli.server_refusals import BACKUP, RESTORE, refuse_on_server
from memoranda.cli.terminal_text import ProgressLine, terminal_line
from memoranda.support.health_issues import check_permissions
from memoranda.upkeep.backup.archive import (
    SECRETS,
    BackupOptions,
    Manifest,
    Progress,
    WrittenBackup,
    note_backup,
    verify,
    write_backup,
)
from memoranda.upkeep.backup.encryption import is_encrypted, load_library
from memoranda.upkeep.backup.restore import opened_backup, restore_backup

_MAX_NAMES = 10
_VERBS = {"copy": "Copying", "verify": "Verifying", "restore": "Restoring"}
passphrase_file_option = click.option(
    "--passphrase-file", type=click.Path(path_type=Path), help="Read the passphrase from the first line of a file."
)
_BACKUP_EPILOG = """\b
Examples:
  memoranda backup ~/memoranda.zip
  memoranda backup /media/usb
  memoranda backup --encrypt ~/Dropbox/memoranda.zip
  memoranda backup --passphrase-file ~/.backup-passphrase /backups
"""
_RESTORE_EPILOG = """\b
Examples:
  memoranda restore ~/memoranda.zip --dry-run
  memoranda restore ~/memoranda.zip --home ~/restored
  memoranda restore ~/memoranda.zip --replace
"""


def read_passphrase(invocation: Invocation, file: Path | None, *, confirm: bool) -> str:
    """The passphrase from a file, or else from the terminal; ends the command without a terminal, or if it is empty."""
    if file is not None:
        file = file.expanduser()
        try:
            lines = file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            invocation.fail(f"The passphrase file {file} cannot be read: {reason}.", code=EXIT_UNUSABLE)
        passphrase = lines[0] if lines else ""
        for issue in check_permissions(file):
            click.echo(terminal_line(f"{file} {issue.problem}: {issue.remedy}"), err=True)
    elif not sys.stdin.isatty():
        invocation.fail("There is no terminal to ask for the passphrase: add --passphrase-file FILE.")
    else:
        passphrase = click.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    if not passphrase:
        invocation.fail("The passphrase is empty.")
    return str(passphrase)


@contextmanager
def shown_progress(invocation: Invocation) -> Iterator[Progress]:
    """Shows on the terminal how far a backup or a restore is."""
    with ProgressLine(visible=not invocation.as_json) as line:
        yield Progress(
            lambda now: line.update(f"{_VERBS[now.step]} {format_size(now.done)} of {format_size(now.total)}")
        )


@click.command(epilog=_BACKUP_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--encrypt", is_flag=True, help="Ask for a passphrase, without which the backup cannot be read.")
@passphrase_file_option
@click.option("--without-secrets", is_flag=True, help="Leave out .env, which contains API keys.")
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
@common_options
def backup(
    invocation: Invocation,
    file: Path,
    encrypt: bool,
    passphrase_file: Path | None,
    without_secrets: bool,
    overwrite: bool,
) -> None:
    """Write the whole home into FILE: conversations, memory, skills, settings and all profiles.

    The home may be in use meanwhile. If FILE is a directory, the backup gets a name with the time in it. Left out are
    locks and what is rebuilt from the rest, such as the search index. Every byte of the file is read again before the
    command succeeds; 'memoranda restore' restores it.
    """
    refuse_on_server(invocation, BACKUP)
    home = invocation.locate_home()
    home.refuse_if_foreign()
    target = _target(file.expanduser().absolute())
    if target.exists() and not overwrite:
        invocation.fail(f"{target} exists. Name another file, or add --overwrite.")
    if not target.parent.is_dir():
        invocation.fail(f"{target.parent} is not a directory.")
    passphrase = None
    if encrypt or passphrase_file:
        load_library()
        passphrase = read_passphrase(invocation, passphrase_file, confirm=True)
    with shown_progress(invocation) as progress:
        options = BackupOptions(home.profile, without_secrets=without_secrets, passphrase=passphrase, progress=progress)
        try:
            written = write_backup(home.root, target, options)
        except OSError as error:
            if error.filename and Path(error.filename).parent != target.parent:
                raise
            reason = error.strerror or error
            invocation.fail(f"{target} cannot be written: {reason}. Name another file.", code=EXIT_UNUSABLE)
    note_backup(home.root, WrittenBackup(str(target), written.created_at))
    _respond_to_backup(invocation, target, written, encrypted=passphrase is not None)


def _respond_to_backup(invocation: Invocation, target: Path, written: Manifest, *, encrypted: bool) -> None:
    size = target.stat().st_size
    has_secrets = any(Path(file.name).name == SECRETS for file in written.files)
    lines = [
        f"Wrote {len(written.files):,} files ({format_size(written.bytes)}) to {target} ({format_size(size)}), "
        "and read them again."
    ]
    if has_secrets and not encrypted:
        lines.append(f"It contains the keys of {SECRETS}: keep it private, or use --encrypt or --without-secrets.")
    data = {
        "success": True,
        "file": str(target),
        "file_bytes": size,
        "files": len(written.files),
        "bytes": written.bytes,
        "encrypted": encrypted,
        "contains_secrets": has_secrets,
        "created_at": written.created_at,
    }
    invocation.respond("\n".join(map(terminal_line, lines)), data)


def _target(file: Path) -> Path:
    return file / f"memoranda-{datetime.now(UTC):%Y%m%dT%H%M%S}.zip" if file.is_dir() else file


@click.command(epilog=_RESTORE_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Keep the present home under another name, and restore in its place.")
@click.option("--dry-run", is_flag=True, help="Only verify the backup.")
@passphrase_file_option
@common_options
def restore(invocation: Invocation, file: Path, replace: bool, dry_run: bool, passphrase_file: Path | None) -> None:
    """Restore the home from FILE, which 'memoranda backup' wrote.

    Every byte is verified first. The home must be missing or empty, unless --replace is given: then it is renamed, and
    nothing of it is lost. The search index is built again by the next search.
    """
    refuse_on_server(invocation, RESTORE)
    file = file.expanduser().absolute()
    passphrase = read_passphrase(invocation, passphrase_file, confirm=False) if is_encrypted(file) else None
    with shown_progress(invocation) as progress, opened_backup(file, passphrase) as archive:
        if dry_run:
            listed, replaced = verify(archive, progress), None
        else:
            restored = restore_backup(archive, invocation.locate_home(), replace=replace, progress=progress)
            listed, replaced = restored.manifest, restored.replaced
    _respond_to_restore(invocation, listed, replaced, dry_run=dry_run)


def _respond_to_restore(invocation: Invocation, listed: Manifest, replaced: Path | None, *, dry_run: bool) -> None:
    root = invocation.locate_home().root
    content = f"{len(listed.files):,} files ({format_size(listed.bytes)}) of {listed.created_at}"
    lines = [f"The backup is complete: {content}." if dry_run else f"Restored {content} to {root}."]
    if replaced:
        lines.append(f"The home from before is {replaced}; delete it when you no longer need it.")
    if active := listed.active_names:
        names = ", ".join(active[:_MAX_NAMES]) + (" …" if len(active) > _MAX_NAMES else "")
        lines.append(
            f"Warning: it brings {names}: plugins run as code, and .env sets keys and addresses. Look at them first if "
            "the backup is not your own."
        )
    data = {
        "success": True,
        "dry_run": dry_run,
        "home": str(root),
        "files": len(listed.files),
        "bytes": listed.bytes,
        "created_at": listed.created_at,
        "version": listed.version,
        "replaced": str(replaced) if replaced else None,
        "active": list(active),
    }
    invocation.respond("\n".join(map(terminal_line, lines)), data)
