"""Looks for files to read; what cannot be looked at is not there, and nothing is followed in circles."""

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from memoranda.importers.reader_protocol import Checkpoint, ImportItem, Problem, ReadEvent

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


# The longest line that is taken; a picture in a transcript may have several megabytes.
LONGEST_LINE = 64 * 1024 * 1024
_MARK_EVERY = 100
_UNFINISHED = "the line is not finished (is it still being written?)"


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is a JSON object, where it is, and where the next one begins."""

    value: dict[str, Any]
    number: int
    raw: bytes
    end: int


def json_lines(item: ImportItem) -> Iterator[Line | Problem]:
    """Every line of a file from where the item begins: an object, or a problem. Blank lines are none."""
    try:
        with open_source(item.file) as stream:
            offset, number = (item.begin.offset, item.begin.line) if item.begin else (0, 0)
            stream.seek(offset)
            yield from lines_in(item.file, stream, offset, number)
    except OSError as error:
        yield unreadable(item, error)


def unreadable(item: ImportItem, error: OSError) -> Problem:
    """What the system said of a file that cannot be read."""
    return Problem(item.file, None, f"cannot be read: {error.strerror or error}", unread=True)


def read_lines(
    lines: Iterable[Line | Problem],
    given: Callable[[Line], Iterable[ReadEvent]],
    state: Callable[[], str] = str,
    ended: Callable[[], Iterable[ReadEvent]] = tuple,
) -> Iterator[ReadEvent]:
    """What every line gives, and in the end, with marks on the way; `state` is what the reader knows at that place."""
    last: Line | None = None
    for found in lines:
        if isinstance(found, Problem):
            yield found
            continue
        last = found
        yield from given(found)
        if found.number % _MARK_EVERY == 0:
            yield Checkpoint(found.end, found.number, state())
    yield from ended()
    if last is not None:
        yield Checkpoint(last.end, last.number, state())


def lines_in(file: Path, stream: BinaryIO, offset: int = 0, number: int = 0) -> Iterator[Line | Problem]:
    """The lines of an open file, whose next byte is at `offset`, after so many lines."""
    while raw := stream.readline(LONGEST_LINE):
        number += 1
        offset += len(raw)
        if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
            offset += _skip_line(stream)
            yield Problem(file, number, f"the line has more than {LONGEST_LINE // 1024 // 1024} MB")
        elif raw.strip():
            yield _parsed(file, raw, number, offset)


def _parsed(file: Path, raw: bytes, number: int, end: int) -> Line | Problem:
    try:
        value = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        if not raw.endswith(b"\n"):
            return Problem(file, number, _UNFINISHED)
        return Problem(file, number, f"not JSON ({str(error)[:100]})")
    if not isinstance(value, dict):
        return Problem(file, number, f"a JSON object is expected, not {type(value).__name__}")
    return Line(value, number, raw, end)


def _skip_line(stream: BinaryIO) -> int:
    skipped = 0
    while raw := stream.readline(LONGEST_LINE):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped


def content(item: ImportItem) -> bytes | Problem:
    """What a file holds, or the problem with it; a file larger than the longest line is one."""
    try:
        with open_source(item.file) as stream:
            raw = stream.read(LONGEST_LINE + 1)
    except OSError as error:
        return unreadable(item, error)
    if len(raw) > LONGEST_LINE:
        return Problem(item.file, None, f"the file has more than {LONGEST_LINE // 1024 // 1024} MB")
    return raw


def document(item: ImportItem) -> Any:
    """The value that a file holds as JSON, or the problem with it."""
    raw = content(item)
    try:
        return raw if isinstance(raw, Problem) else json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        return Problem(item.file, None, f"not JSON ({str(error)[:100]})")


_SETTLED_AFTER = 120.0


def is_settling(changed: float) -> bool:
    """Whether something was changed so lately that it may not be finished."""
    return time.time() - changed < _SETTLED_AFTER


def when_changed(changed: float) -> float:
    """The time of a change as an item says it: for what is settling always another one, so that it is read again."""
    return time.time() if is_settling(changed) else changed
