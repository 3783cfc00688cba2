"""Byte-exact private copies of a memory file, kept before anything about it could get lost."""

import re
import time
from pathlib import Path

from memoranda.curated.memory_file import Readable
from memoranda.support.files import write_private

KEPT_PER_FILE = 10
_NAME = re.compile(r"\.bak\.(\d+)(?:-(\d+))?$")


def backups_of(path: Path) -> list[Path]:
    """The copies of a file, oldest first."""
    found = [
        (int(match.group(1)), int(match.group(2) or 0), candidate)
        for candidate in path.parent.glob(f"{path.name}.bak.*")
        if (match := _NAME.search(candidate.name))
    ]
    return [candidate for _, _, candidate in sorted(found)]


def keep_backup(state: Readable) -> Path:
    """Copy a file as it was read, unless an equal copy exists; only the newest few are kept. Needs the lock."""
    existing = backups_of(state.path)
    for backup in existing:
        if backup.stat().st_size == len(state.raw) and backup.read_bytes() == state.raw:
            return backup
    backup = _free_name(state.path)
    write_private(backup, state.raw)
    for surplus in existing[: max(0, len(existing) + 1 - KEPT_PER_FILE)]:
        surplus.unlink(missing_ok=True)
    return backup


def _free_name(path: Path) -> Path:
    seconds, number = int(time.time()), 0
    while (backup := path.with_name(f"{path.name}.bak.{seconds}{f'-{number}' if number else ''}")).exists():
        number += 1
    return backup
