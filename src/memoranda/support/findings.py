"""A finding of the doctor: what is wrong with which path, how to mend it, and whether we can do it ourselves."""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoranda.support.files import PRIVATE_DIRECTORY, PRIVATE_FILE

_LITTLE_ROOM = 1_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """`mend` is there when the mend is safe enough to be done by 'memoranda doctor --mend'; it may tell what it did."""

    severity: Literal["error", "warning", "note"]
    path: Path
    problem: str
    remedy: str
    mend: Callable[[], object] | None = None


def as_far_as_possible(place: Path, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a check, and one more when it cannot go on."""
    try:
        yield from check()
    except OSError as error:
        path = Path(error.filename or place)
        yield Finding("error", path, f"cannot be examined: {error.strerror}", "mend its permissions or its file type")


def not_writable(directory: Path) -> Iterator[Finding]:
    """Whether nothing can be written in a directory, for want of permission or of room."""
    if not os.access(directory, os.W_OK | os.X_OK):
        yield Finding("error", directory, "cannot be written", "make it writable (chmod 700), or use another home")
    elif shutil.disk_usage(directory).free < _LITTLE_ROOM:
        yield Finding("error", directory, "lies on a disk that is full", "make room on the disk")


def loose_permissions(path: Path) -> Iterator[Finding]:
    """Whether others than the owner can get at a file or directory."""
    if sys.platform == "win32" or path.is_symlink():
        return
    wanted = PRIVATE_DIRECTORY if path.is_dir() else PRIVATE_FILE
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & ~wanted & 0o077:
        yield Finding(
            "warning",
            path,
            f"can be used by others (mode {mode:04o})",
            f"chmod {wanted:o}",
            lambda: os.chmod(path, wanted),
        )
