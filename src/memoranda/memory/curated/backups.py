"""Keeps byte-exact private copies of a memory file before a write could lose something in it."""

import re
import time
from pathlib import Path

from memoranda.memory.curated.memory_file import ReadableMemoryFile
from memoranda.storage.files.named_texts import NamedTexts

MAX_BACKUPS_PER_FILE = 10
# The number at the end distinguishes these backups from those of Hermes, which stay untouched.
_NAME = re.compile(r"\.bak\.(\d+)-(\d+)$")


def list_backups(backups: NamedTexts, file_name: str) -> list[str]:
    """The names of the backups of a file, oldest first."""
    found = [(stamp, name) for name in backups.names() if (stamp := _stamp(name)) and name.startswith(f"{file_name}.")]
    return [name for _, name in sorted(found)]


def store_backup(backups: NamedTexts, state: ReadableMemoryFile) -> Path:
    """Copy a file as it was read, unless an equal backup exists; older backups are pruned. Needs the lock."""
    existing = list_backups(backups, state.path.name)
    for name in existing:
        if backups.read(name) == state.raw:
            return backups.path(name)
    backup = _next_name(state.path.name, existing)
    backups.write(backup, state.raw)
    for surplus in existing[: max(0, len(existing) + 1 - MAX_BACKUPS_PER_FILE)]:
        backups.remove(surplus)
    return backups.path(backup)


def _next_name(file_name: str, existing: list[str]) -> str:
    """A name that sorts after all existing ones, even within the same second."""
    seconds, number = int(time.time()), 0
    if existing and (newest := _stamp(existing[-1])) and newest >= (seconds, 0):
        seconds, number = newest[0], newest[1] + 1
    return f"{file_name}.bak.{seconds}-{number}"


def _stamp(name: str) -> tuple[int, int] | None:
    found = _NAME.search(name)
    return (int(found.group(1)), int(found.group(2))) if found else None
