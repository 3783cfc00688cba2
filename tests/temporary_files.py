"""Where tests put their files: in memory where the system has such a directory, because they sync many thousand times.

A test about the disk itself is marked `disk`: its directory is on the disk.
"""

import atexit
import os
import tempfile
from functools import cache
from pathlib import Path
from shutil import disk_usage, rmtree

_MEMORY = "/dev/shm"
_ENOUGH_BYTES = 1 << 30
_DISK = "/var/tmp"


def use_memory_for_temporary_files() -> None:
    """Let this process and those that it starts make temporary files in memory, if there is enough of it."""
    if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and disk_usage(_MEMORY).free > _ENOUGH_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY


@cache
def disk_directory() -> Path:
    """A directory on the disk, for this process; deleted when the process ends."""
    directory = tempfile.mkdtemp(prefix="memoranda-test-", dir=_DISK if os.path.isdir(_DISK) else None)
    atexit.register(rmtree, directory, ignore_errors=True)
    return Path(directory)
