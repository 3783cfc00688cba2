"""Restores a backup into a home: verified first, complete or not at all, and what was there before is kept."""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from memoranda.errors import BackupError, LockTimeoutError
from memoranda.storage.sqlite.exclusive_file import exclusive_access
from memoranda.support.durable_files import make_private_directory, sync_directory, write_private_parts
from memoranda.support.home import Home
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.backup.archive import Manifest, Progress, read_manifest, read_member, verify
from memoranda.upkeep.backup.encryption import decrypt, is_encrypted

_PREFIX = ".restoring-"
# The record comes last: a home without it is a home that has recorded nothing, and can be restored into again.
_LAST = "state.db"


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored, and where the home that was there before is now."""

    manifest: Manifest
    replaced: Path | None


@contextmanager
def opened_backup(file: Path, passphrase: str | None) -> Iterator[Path]:
    """The plain zip file of a backup; an encrypted one is decrypted into a private temporary file meanwhile."""
    if not file.is_file():
        raise BackupError(f"{file} does not exist, or is not a file.")
    if not is_encrypted(file):
        yield file
        return
    if passphrase is None:
        raise BackupError(f"{file} is encrypted: give the passphrase.")
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as work:
        plain = Path(work, "backup.zip")
        with open(plain, "xb") as stream:
            decrypt(file, stream, passphrase)
        yield plain


def restore_backup(archive: Path, home: Home, *, replace: bool = False, progress: Progress | None = None) -> Restored:
    """Restore a plain backup into a home that is missing or empty; `replace` moves the present one to another name.

    Every byte is verified before anything changes. If the restore fails or is interrupted, the home is as it was.
    """
    progress = progress or Progress()
    listed = verify(archive, progress)
    root = home.root
    _remove_leftovers(root)
    is_used = root.exists() and any(root.iterdir())
    if is_used and not replace:
        raise BackupError(
            f"{root} is not empty. Restore into another --home, or with --replace, which keeps it under another name."
        )
    # An empty directory may be a volume of a container, beside which nothing can be written.
    directory = root if root.exists() and not is_used else root.parent
    make_private_directory(directory)
    free = shutil.disk_usage(directory).free
    if listed.bytes > free:
        raise BackupError(f"The backup needs {listed.bytes:,} bytes, and {directory} has {free:,} free.")
    work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=directory))
    try:
        _extract(archive, listed, work, progress)
        if directory == root:
            _move_entries(work, root)
            return Restored(listed, None)
        replaced = _move_away(root) if is_used else None
        try:
            os.rename(work, root)
        except OSError:
            if replaced:
                os.rename(replaced, root)
            raise
        sync_directory(root.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Restored(listed, replaced)


def _remove_leftovers(root: Path) -> None:
    """Remove what killed restores left in an otherwise empty directory."""
    if root.is_dir() and all(name.startswith(_PREFIX) for name in os.listdir(root)):
        for name in os.listdir(root):
            shutil.rmtree(root / name)


def _extract(archive: Path, listed: Manifest, work: Path, progress: Progress) -> None:
    progress.start("restore", listed.bytes)
    with zipfile.ZipFile(archive) as opened:
        if read_manifest(opened) != listed:
            raise BackupError(f"{archive} changed while it was read.")
        for file in listed.files:
            target = work / file.name
            make_private_directory(target.parent)
            write_private_parts(target, read_member(opened, file))
            progress.advance(file.bytes)


def _move_away(root: Path) -> Path:
    """Rename a home that no other process has open."""
    record = root / _LAST
    if record.exists():
        try:
            with exclusive_access(record):
                pass
        except LockTimeoutError as error:
            raise BackupError(f"{error} End the programs that use the home, and restore again.") from error
    # To the microsecond: a restore that was killed may be repeated within a second.
    target = root.with_name(f"{root.name}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
    try:
        os.rename(root, target)
    except OSError as error:
        raise BackupError(f"{root} cannot be moved away ({error.strerror}). Restore into another --home.") from error
    return target


def _move_entries(work: Path, root: Path) -> None:
    for name in sorted(os.listdir(work), key=lambda name: (name == _LAST, name)):
        os.rename(work / name, root / name)
    sync_directory(root)
