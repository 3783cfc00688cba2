"""Renames OpenClaw's directory after a migration; its content is not changed."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memoranda.support.durable_files import sync_directory

_SUFFIX = ".pre-migration"


@dataclass(frozen=True, slots=True)
class DirectoryRename:
    """The planned rename of a directory, with the size of its content."""

    directory: Path
    new_path: Path
    files: int
    bytes: int


def plan_rename(directory: Path) -> DirectoryRename:
    """Return how a directory would be renamed."""
    directory = directory.absolute()
    files = total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            files += 1
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return DirectoryRename(directory, _free_name(directory), files, total)


def rename_directory(planned: DirectoryRename) -> Path:
    """Rename a directory and return its new path; raises OSError."""
    new_path = _free_name(planned.directory)
    os.rename(planned.directory, new_path)
    sync_directory(new_path.parent)
    return new_path


def _free_name(directory: Path) -> Path:
    day = f"{datetime.now(UTC):%Y%m%d}"
    endings = [_SUFFIX, f"{_SUFFIX}-{day}", *(f"{_SUFFIX}-{day}-{number}" for number in range(2, 1000))]
    names = (directory.with_name(directory.name + ending) for ending in endings)
    return next(name for name in names if not os.path.lexists(name))
