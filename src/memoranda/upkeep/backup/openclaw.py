"""Backs up a home before a migration, in the directory `backups` of that home."""

from datetime import UTC, datetime
from pathlib import Path

from memoranda.support.durable_files import make_private_directory
from memoranda.upkeep.backup.archive import BackupOptions, write_backup
from memoranda.upkeep.backup.contents import DIRECTORY, list_files

_PREFIX = "before-import-"
_MAX_BACKUPS = 5
# Reports and logs; and other profiles, which a migration does not change.
_EXCLUDED = ("migration", "imports", "profiles", "logs")


def back_up(root: Path) -> Path | None:
    """Back up everything that is not derived, and keep the newest five backups; None when the home is empty."""
    if not list_files(root, _EXCLUDED):
        return None
    directory = root / DIRECTORY
    make_private_directory(directory)
    for leftover in directory.glob(f".{_PREFIX}*.tmp"):
        leftover.unlink()
    target = directory / f"{_PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%S%f}.zip"
    write_backup(root, target, BackupOptions(exclude=_EXCLUDED))
    for old in sorted(directory.glob(f"{_PREFIX}*.zip"))[:-_MAX_BACKUPS]:
        old.unlink()
    return target
