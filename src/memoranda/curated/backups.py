"""Keeps byte-exact private copies of a memory file before a write could lose something in it."""

import re
import time
from pathlib import Path

from memoranda.curated.memory_file import ReadableMemoryFile
from memoranda.support.durable_files import write_private

MAX_BACKUPS_PER_FILE = 10
# The number at the end distinguishes these backups from those of Hermes, which stay untouched.
_NAME = re.compile(r"\.bak\.(\d+)-(\d+)$")


def list_backups(path: Path) -> list[Path]:
    """The backups of a file, oldest first."""
    found = [(stamp, backup) for backup in path.parent.glob(f"{path.name}.bak.*") if (stamp := _stamp(backup))]
    return [backup for _, backup in sorted(found)]


def store_backup(state: ReadableMemoryFile) -> Path:
    """Copy a file as it was read, unless an equal backup exists; older backups are pruned. Needs the lock."""
    existing = list_backups(state.path)
    for backup in existing:
        if backup.stat().st_size == len(state.raw) and backup.read_bytes() == state.raw:
            return backup
    backup = _next_name(state.path, existing)
    write_private(backup, state.raw)
    for surplus in existing[: max(0, len(existing) + 1 - MAX_BACKUPS_PER_FILE)]:
        surplus.unlink(missing_ok=True)
    return backup


def _next_name(path: Path, existing: list[Path]) -> Path:
    """A name that sorts after all existing ones, even within the same second."""
    seconds, number = int(time.time()), 0
    if existing and (newest := _stamp(existing[-1])) and newest >= (seconds, 0):
        seconds, number = newest[0], newest[1] + 1
    return path.with_name(f"{path.name}.bak.{seconds}-{number}")


def _stamp(backup: Path) -> tuple[int, int] | None:
    found = _NAME.search(backup.name)
    return (int(found.group(1)), int(found.group(2))) if found else None
