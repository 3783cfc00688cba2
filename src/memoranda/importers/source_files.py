"""Looks for files to read; what cannot be looked at is not there, and nothing is followed in circles."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from memoranda.importers.reader_protocol import ImportItem

_DEEPEST = 12
_SEALED = 4096
_READ_ONLY = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def open_source(file: Path) -> BinaryIO:
    """Open a file of another program to read it; a pipe or device in its place is an error, not an endless wait."""
    descriptor = os.open(file, _READ_ONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", str(file))
    return open(descriptor, "rb")


def item_at(file: Path, what: str) -> ImportItem | None:
    """A regular file as an item; None when there is none."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return ImportItem(file, status.st_size, status.st_mtime, what) if stat.S_ISREG(status.st_mode) else None


def files_under(directory: Path, wanted: Callable[[Path], bool], what: str) -> list[ImportItem]:
    """The regular files in a directory and below that are wanted, in the order of their names."""
    found = [item_at(file, what) for file in _walk(directory, 0) if wanted(file)]
    return [item for item in found if item is not None]


def _walk(directory: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return
    for entry in entries:
        # A linked file may be somebody's way to keep transcripts elsewhere; a linked directory may lead in circles.
        if not entry.is_dir(follow_symlinks=False):
            yield directory / entry.name
        elif depth < _DEEPEST:
            yield from _walk(directory / entry.name, depth + 1)


def seal(file: Path, offset: int) -> str:
    """A digest of what stands before a place in a file: the same file, grown, has the same one."""
    begin = max(0, offset - _SEALED)
    try:
        with open_source(file) as stream:
            stream.seek(begin)
            before = stream.read(offset - begin)
    except OSError:
        return ""
    return hashlib.sha256(before).hexdigest() if len(before) == offset - begin else ""
