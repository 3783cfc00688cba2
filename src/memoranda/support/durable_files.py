"""Private, durable files: what these functions return from has reached the disk.

A file is replaced in two steps, so that a caller can do something durable in between: `stage` writes the new
content beside the target and syncs it, `publish` renames it into place and syncs the directory. The staged name
is fixed per target, which is safe because every caller holds a lock, and lets the next writer find what a killed
one left behind.
"""

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
_WINDOWS_REPLACE_TRIES = 50
_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def sync(descriptor: int) -> None:
    """Force a file's content to the disk itself, where the system can do so."""
    if sys.platform == "darwin":
        # fsync on macOS only reaches the drive's cache.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable; Windows does that by itself and offers no call for it."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def make_private_directory(directory: Path) -> None:
    """Create a directory and its missing parents, readable by their owner alone; existing ones stay as they are."""
    missing: list[Path] = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = directory.parent
    for path in reversed(missing):
        with suppress(FileExistsError):
            path.mkdir(mode=PRIVATE_DIRECTORY)
        sync_directory(path.parent)


def staged_path(target: Path) -> str:
    """Where the next content of `target` waits until it is published."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name}.tmp")


def discard_staged(target: Path) -> None:
    """Remove what was staged for `target`, if anything."""
    with suppress(FileNotFoundError):
        os.unlink(staged_path(target))


def stage(target: Path, content: bytes) -> None:
    """Write and sync the next content of `target` beside it; on any failure nothing is left behind."""
    path = staged_path(target)
    descriptor = _create(path)
    try:
        try:
            _write_all(descriptor, content)
            sync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        discard_staged(target)
        raise


def _create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    try:
        return os.open(path, flags, PRIVATE_FILE)
    except FileExistsError:
        # A leftover, or a link that somebody planted: never written through.
        os.unlink(path)
        return os.open(path, flags, PRIVATE_FILE)


def publish(target: Path, place: Path | None = None) -> None:
    """Rename what was staged for `target` into place (there, unless told otherwise) and make the new name durable."""
    staged = staged_path(target)
    target = place or target
    for attempt in range(_WINDOWS_REPLACE_TRIES):
        try:
            os.replace(staged, target)
            break
        except PermissionError:
            # On Windows a reader that has the file open blocks the rename for a moment.
            if sys.platform != "win32" or attempt == _WINDOWS_REPLACE_TRIES - 1:
                raise
            time.sleep(0.01)
    sync_directory(target.parent)


def write_private(target: Path, content: bytes) -> None:
    """Replace a file atomically and durably. The caller holds the lock that guards it."""
    stage(target, content)
    try:
        publish(target)
    except BaseException:
        discard_staged(target)
        raise


def append_private(path: Path, content: bytes) -> None:
    """Append durably and all or nothing: a failed append is cut off again. The caller holds the lock."""
    descriptor = open_without_following(path)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        try:
            _write_all(descriptor, content)
            sync(descriptor)
            if end == 0:
                # It may be a new file, whose name is not durable yet.
                sync_directory(path.parent)
        except BaseException:
            os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)


def open_without_following(path: Path) -> int:
    """Open a file of ours for reading and writing, making it if need be; a link or a pipe in its place is an error."""
    return _regular(os.open(path, os.O_RDWR | os.O_CREAT | _BINARY | _NOFOLLOW | _NONBLOCK, PRIVATE_FILE), path)


def read_file(path: Path, most: int = -1) -> bytes:
    """The content of a regular file; a pipe or device in its place is an error instead of an endless wait."""
    with open(_regular(os.open(path, os.O_RDONLY | _BINARY | _NONBLOCK), path), "rb") as file:
        return file.read(most)


def _regular(descriptor: int, path: Path) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "Not a regular file", str(path))


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
