"""`memoranda restore`: a home out of a backup."""

from pathlib import Path

import click

from memoranda.cli.backup.shared_options import passphrase_file_option, read_passphrase, shown_progress
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.imports.summary_text import format_size
from memoranda.cli.server_refusals import RESTORE, refused_on_server
from memoranda.cli.terminal_text import terminal_line
from memoranda.upkeep.backup.archive import verify
from memoranda.upkeep.backup.encryption import is_encrypted
from memoranda.upkeep.backup.manifest import Manifest
from memoranda.upkeep.backup.restore import opened_backup, restore_backup

_EPILOG = """\b
Examples:
  memoranda restore ~/memoranda.zip --dry-run
  memoranda restore ~/memoranda.zip --home ~/restored
  memoranda restore ~/memoranda.zip --replace
"""


@click.command(epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Keep the present home under another name, and restore in its place.")
@click.option("--dry-run", is_flag=True, help="Only verify the backup.")
@passphrase_file_option
@common_options
@refused_on_server(RESTORE)
def command(file: Path, replace: bool, dry_run: bool, passphrase_file: Path | None) -> None:
    """Restore the home from FILE, which 'memoranda backup' wrote.

    Every byte is verified first. The home must be missing or empty, unless --replace is given: then it is renamed, and
    nothing of it is lost. The search index is built again by the next search.
    """
    invocation = Invocation.current()
    file = file.expanduser().absolute()
    passphrase = read_passphrase(invocation, passphrase_file, confirm=False) if is_encrypted(file) else None
    with shown_progress(invocation) as progress, opened_backup(file, passphrase) as archive:
        if dry_run:
            listed, replaced = verify(archive, progress), None
        else:
            restored = restore_backup(archive, invocation.locate_home(), replace=replace, progress=progress)
            listed, replaced = restored.manifest, restored.replaced
    _respond(invocation, listed, replaced, dry_run=dry_run)


def _respond(invocation: Invocation, listed: Manifest, replaced: Path | None, *, dry_run: bool) -> None:
    root = invocation.locate_home().root
    content = f"{len(listed.files):,} files ({format_size(listed.bytes)}) of {listed.created_at}"
    lines = [f"The backup is complete: {content}." if dry_run else f"Restored {content} to {root}."]
    if replaced:
        lines.append(f"The home from before is {replaced}; delete it when you no longer need it.")
    data = {
        "success": True,
        "dry_run": dry_run,
        "home": str(root),
        "files": len(listed.files),
        "bytes": listed.bytes,
        "created_at": listed.created_at,
        "version": listed.version,
        "replaced": str(replaced) if replaced else None,
    }
    invocation.respond("\n".join(map(terminal_line, lines)), data)
