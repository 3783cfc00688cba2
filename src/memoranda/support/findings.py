"""A finding of the doctor: what is wrong with which path, how to mend it, and whether we can do it ourselves."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoranda.support.files import PRIVATE_DIRECTORY, PRIVATE_FILE


@dataclass(frozen=True, slots=True)
class Finding:
    """`mend` is there when the mend is safe enough to be done by 'memoranda doctor --mend'."""

    severity: Literal["error", "warning", "note"]
    path: Path
    problem: str
    remedy: str
    mend: Callable[[], None] | None = None


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
