"""`memoranda backup`: the whole home in one verified file."""

from datetime import UTC, datetime
from pathlib import Path

import click

from memoranda.cli.backup.shared_options import passphrase_file_option, read_passphrase, shown_progress
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.imports.summary_text import format_size
from memoranda.cli.server_refusals import BACKUP, refused_on_server
from memoranda.cli.terminal_text import terminal_line
from memoranda.home.config import load
from memoranda.upkeep.backup.archive import BackupOptions, write_backup
from memoranda.upkeep.backup.contents import SECRETS
from memoranda.upkeep.backup.encryption import load_library
from memoranda.upkeep.backup.manifest import Manifest
from memoranda.upkeep.backup.written_backups import WrittenBackup, note_backup

_EPILOG = """\b
Examples:
  memoranda backup ~/memoranda.zip
  memoranda backup /media/usb
  memoranda backup --encrypt ~/Dropbox/memoranda.zip
  memoranda backup --passphrase-file ~/.backup-passphrase /backups
"""


@click.command(epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--encrypt", is_flag=True, help="Ask for a passphrase, without which the backup cannot be read.")
@passphrase_file_option
@click.option("--without-secrets", is_flag=True, help="Leave out .env, which contains API keys.")
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
@common_options
@refused_on_server(BACKUP)
def command(file: Path, encrypt: bool, passphrase_file: Path | None, without_secrets: bool, overwrite: bool) -> None:
    """Write the whole home into FILE: conversations, memory, skills, settings and all profiles.

    The home may be in use meanwhile. If FILE is a directory, the backup gets a name with the time in it. Left out are
    locks and what is rebuilt from the rest, such as the search index. Every byte of the file is read again before the
    command succeeds; 'memoranda restore' restores it.
    """
    invocation = Invocation.current()
    home = invocation.locate_home()
    home.refuse_if_foreign()
    if load(home).store.url:
        invocation.fail(
            "The record of this home is on a PostgreSQL server: back it up with pg_dump, and config.yaml, .env and "
            "skills as files."
        )
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
        written = write_backup(home.root, target, options)
    note_backup(home.root, WrittenBackup(str(target), written.created_at))
    _respond(invocation, target, written, encrypted=passphrase is not None)


def _respond(invocation: Invocation, target: Path, written: Manifest, *, encrypted: bool) -> None:
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
