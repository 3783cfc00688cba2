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
class HealthIssue:
    """`mend` is there when the mend is safe enough to be done by 'memoranda doctor --mend'; it may tell what it did."""

    severity: Literal["error", "warning", "note"]
    path: Path
    problem: str
    remedy: str
    repair: Callable[[], object] | None = None


def issues_until_error(place: Path, check: Callable[[], Iterator[HealthIssue]]) -> Iterator[HealthIssue]:
    """The findings of a check, and one more when it cannot go on."""
    try:
        yield from check()
    except OSError as error:
        path = Path(error.filename or place)
        yield HealthIssue(
            "error", path, f"cannot be examined: {error.strerror}", "mend its permissions or its file type"
        )


def check_writable(directory: Path) -> Iterator[HealthIssue]:
    """Whether nothing can be written in a directory, for want of permission or of room."""
    if not os.access(directory, os.W_OK | os.X_OK):
        yield HealthIssue("error", directory, "cannot be written", "make it writable (chmod 700), or use another home")
    elif shutil.disk_usage(directory).free < _LITTLE_ROOM:
        yield HealthIssue("error", directory, "lies on a disk that is full", "make room on the disk")


def check_permissions(path: Path) -> Iterator[HealthIssue]:
    """Whether others than the owner can get at a file or directory."""
    if sys.platform == "win32" or path.is_symlink():
        return
    wanted = PRIVATE_DIRECTORY if path.is_dir() else PRIVATE_FILE
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & ~wanted & 0o077:
        yield HealthIssue(
            "warning",
            path,
            f"can be used by others (mode {mode:04o})",
            f"chmod {wanted:o}",
            lambda: os.chmod(path, wanted),
        )
