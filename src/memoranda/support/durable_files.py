"""Writes private files durably: when these functions return, the content has reached the disk.

A file is replaced in two steps, so that a caller can do something durable in between: `stage` writes the new
content next to the target and syncs it, `publish` renames it over the target and syncs the directory. The staged name
is fixed per target. That is safe because every caller holds a lock, and it lets the next writer find what a killed
one left behind.
"""

import errno
import os
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memoranda.support.processes import has_ended, process_identity

if sys.platform != "win32":
    import fcntl

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
_WINDOWS_REPLACE_TRIES = 50
_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def sync(descriptor: int) -> None:
    """Force the content of a file to the disk itself, where the system can do so."""
    if sys.platform == "darwin":
        # fsync on macOS only reaches the drive's cache.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make the file names in a directory durable; Windows does that by itself and has no call for it."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def create_private_file(path: Path) -> None:
    """Create an empty file that only its owner can read, and its directory; an existing one stays as it is."""
    make_private_directory(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))


def make_private_directory(directory: Path) -> None:
    """Create a directory and its missing parents, readable only by their owner; existing ones stay as they are."""
    missing: list[Path] = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = directory.parent
    for path in reversed(missing):
        with suppress(FileExistsError):
            path.mkdir(mode=PRIVATE_DIRECTORY)
        sync_directory(path.parent)


def staged_path(target: Path) -> str:
    """The path where the next content of `target` is staged until it is published."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name}.tmp")


def discard_staged(target: Path) -> None:
    """Remove what was staged for `target`, if anything."""
    with suppress(FileNotFoundError):
        os.unlink(staged_path(target))


def stage(target: Path, content: bytes) -> None:
    """Write and sync the next content of `target` next to it; on any failure nothing is left behind."""
    _stage_parts(target, (content,))


def _stage_parts(target: Path, parts: Iterable[bytes]) -> None:
    path = staged_path(target)
    descriptor = _create(path)
    try:
        try:
            for part in parts:
                _write_all(descriptor, part)
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
        # A leftover, or a link that another user planted; the new content must not go through it.
        os.unlink(path)
        return os.open(path, flags, PRIVATE_FILE)


def publish(staged_for: Path, target: Path | None = None, *, durable_name: bool = True) -> None:
    """Rename what was staged for a file over it, or over another `target`, and make the new name durable.

    Without `durable_name` a power cut may restore the content from before.
    """
    staged, target = staged_path(staged_for), target or staged_for
    for attempt in range(_WINDOWS_REPLACE_TRIES):
        try:
            os.replace(staged, target)
            break
        except PermissionError:
            # On Windows a reader that has the file open blocks the rename for a short time.
            if sys.platform != "win32" or attempt == _WINDOWS_REPLACE_TRIES - 1:
                raise
            time.sleep(0.01)
    if durable_name:
        sync_directory(target.parent)


def write_private(target: Path, content: bytes) -> None:
    """Replace a file atomically and durably. The caller holds the lock that guards it."""
    write_private_parts(target, (content,))


def write_private_parts(target: Path, parts: Iterable[bytes]) -> None:
    """Like `write_private`, for content that is produced part by part and need not fit into memory.

    If producing a part fails, or is interrupted, the file stays as it was.
    """
    _stage_parts(target, parts)
    try:
        publish(target)
    except BaseException:
        discard_staged(target)
        raise


def write_private_unlocked(target: Path, content: bytes) -> None:
    """Replace a file atomically without a lock: every writer stages under a name of its own, and the last one wins.

    A new file is durable. After a power cut, one that was replaced has its new content or the one from before. What
    killed writers staged is removed.
    """
    own_name = target.with_name(f"{target.name}.{process_identity()}-{time.monotonic_ns()}")
    stage(own_name, content)
    try:
        publish(own_name, target, durable_name=not os.path.exists(target))
    except BaseException:
        discard_staged(own_name)
        raise
    _remove_abandoned(target)


def _remove_abandoned(target: Path) -> None:
    """Remove what writers of `target` had staged under names of their own when they were killed."""
    prefix = f".{target.name}."
    for name in os.listdir(target.parent):
        if name.startswith(prefix) and name.endswith(".tmp") and has_ended(name[len(prefix) :].rpartition("-")[0]):
            # Another writer may have removed it already; on some systems a file that is open cannot be removed.
            with suppress(OSError):
                os.unlink(target.with_name(name))


def append_private(path: Path, content: bytes) -> None:
    """Append durably, all or nothing: a failed append is truncated again. The caller holds the lock."""
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


def append_unsynced(path: Path, content: bytes) -> int:
    """Append to a log with one write, as other processes may do at the same time; return its size."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, PRIVATE_FILE)
    try:
        os.write(descriptor, content)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def open_without_following(path: Path) -> int:
    """Open a file of Memoranda for reading and writing, creating it if needed; a link or a pipe is an error."""
    try:
        opened = os.open(path, os.O_RDWR | os.O_CREAT | _BINARY | _NOFOLLOW | _NONBLOCK, PRIVATE_FILE)
    except OSError as error:
        if not os.path.islink(path):
            raise
        raise OSError(error.errno, "it is a link, and links are not followed; delete it", str(path)) from error
    return _require_regular(opened, path)


def read_file(path: Path, max_bytes: int = -1) -> bytes:
    """The content of a regular file; a pipe or device is an error instead of an endless wait."""
    with open(_require_regular(os.open(path, os.O_RDONLY | _BINARY | _NONBLOCK), path), "rb") as file:
        return file.read(max_bytes)


def _require_regular(descriptor: int, path: Path) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "Not a regular file", str(path))


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
