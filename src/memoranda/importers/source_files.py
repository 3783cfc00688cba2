"""Finds and reads the files of other programs: whole files, JSON documents, and JSON lines one at a time.

Unreadable files, broken, endless and unfinished lines become problems and are never fatal.
"""

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote, urlsplit

from memoranda.importers.reader_protocol import Checkpoint, ImportedMessage, ImportItem, Problem, ReadError, ReadEvent

# An image in a transcript may have several megabytes.
MAX_LINE_BYTES = 64 * 1024 * 1024
_MAX_DEPTH = 12
_LONG_LINE_BYTES = 1024 * 1024
_DIGESTED_BYTES = 4096
_READ_ONLY = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
# Most lines of a transcript are longer than Python's own buffer. With 128 KB the pieces of a very long line would stay
# in the memory of the process after it was read.
_BUFFER_BYTES = 64 * 1024
_LINES_PER_CHECKPOINT = 100
_UNFINISHED = "the line is not finished"
_SETTLED_AFTER = 120.0
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_decode_json = json.JSONDecoder().decode
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server")


def open_source(file: Path) -> BinaryIO:
    """Open a file of another program to read it; raises for a pipe or device, which could block forever."""
    descriptor = os.open(file, _READ_ONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", str(file))
    return open(descriptor, "rb", buffering=_BUFFER_BYTES)


def item_at(file: Path, label: str) -> ImportItem | None:
    """Return a regular file as an item; None when there is none."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return ImportItem(file, status.st_size, status.st_mtime, label) if stat.S_ISREG(status.st_mode) else None


def leads_out(file: Path, directory: Path) -> bool:
    """Whether a file under a directory is outside of it once links are followed."""
    try:
        return file.is_relative_to(directory) and not file.resolve().is_relative_to(directory.resolve())
    except (OSError, RuntimeError):
        return True


def item_beside(source: Path, file: Path, label: str) -> ImportItem | None:
    """Return a file that belongs to the file of an item, such as the one with its title; None when there is none.

    Another person may have written both, and a link in place of the file may lead to something private: it must be
    under the directory that the two share.
    """
    directory = Path(os.path.commonpath([source.absolute().parent, file.absolute().parent]))
    return None if leads_out(file.absolute(), directory) else item_at(file, label)


def find_files(
    directory: Path, is_wanted: Callable[[Path], bool], label: str, max_depth: int = _MAX_DEPTH
) -> list[ImportItem]:
    """Return the wanted regular files under a directory, sorted by path; skips directories that cannot be listed."""
    found = [item_at(file, label) for file in _walk(directory, max_depth) if is_wanted(file)]
    return [item for item in found if item is not None]


def find_items(
    path: Path | None, own: Iterable[Path], is_wanted: Callable[[Path], bool], label: str
) -> list[ImportItem]:
    """Return the file at a path, or the wanted files under it; without a path, those in the program's own directories.

    A path that is a file is returned whatever it contains, so that reading it reports what is wrong with it.
    """
    if path is not None and (single := item_at(path, label)):
        return [single]
    directories = own if path is None else [path]
    return [item for directory in directories for item in find_files(directory, is_wanted, label)]


def _walk(directory: Path, levels: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return
    for entry in entries:
        # Users link single transcripts from elsewhere; a linked directory could be a cycle.
        if not entry.is_dir(follow_symlinks=False):
            yield directory / entry.name
        elif levels:
            yield from _walk(directory / entry.name, levels - 1)


def prefix_digest(file: Path, offset: int) -> str:
    """Return a digest of the bytes before an offset, which stays the same if a file only grows; "" if unreadable."""
    start = max(0, offset - _DIGESTED_BYTES)
    try:
        with open_source(file) as stream:
            stream.seek(start)
            before = stream.read(offset - start)
    except OSError:
        return ""
    return hashlib.sha256(before).hexdigest() if len(before) == offset - start else ""


def is_recently_changed(modified_at: float) -> bool:
    """Whether something changed so recently that its program may still be writing to it.

    A message has one external id, and the record keeps its first version. A message that is still growing would stay
    incomplete, so readers leave it for the next import until its file has not changed for a while.
    """
    return time.time() - modified_at < _SETTLED_AFTER


def reread_time(modified_at: float) -> float:
    """Return the modification time for an item; for a recent change, the current time, so that it is read again."""
    return time.time() if is_recently_changed(modified_at) else modified_at


def read_bytes(item: ImportItem) -> bytes | Problem:
    """Return the content of a file, or the problem with it; a file larger than the longest line is a problem."""
    try:
        with open_source(item.file) as stream:
            raw = stream.read(MAX_LINE_BYTES + 1)
    except OSError as error:
        return unreadable_problem(item, error)
    if len(raw) > MAX_LINE_BYTES:
        return Problem(item.file, None, f"the file has more than {MAX_LINE_BYTES // 1024 // 1024} MB")
    return raw


def read_json_file(item: ImportItem) -> Any:
    """Return the JSON value in a file, or the problem with it."""
    raw = read_bytes(item)
    try:
        return raw if isinstance(raw, Problem) else json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        return Problem(item.file, None, f"not JSON ({str(error)[:100]})")


def load_json(item: ImportItem) -> Any:
    """Return the JSON value in a file; raises ReadError."""
    value = read_json_file(item)
    if isinstance(value, Problem):
        raise ReadError(value)
    return value


def unreadable_problem(item: ImportItem, error: OSError) -> Problem:
    # An error without the words of the system is one of ours, which says what is wrong.
    text = f"cannot be read: {error.strerror}" if error.strerror else str(error)
    return Problem(item.file, None, text, unread=True)


class Line(NamedTuple):
    """One line that is a JSON object; `end` is the offset of the next line.

    `raw` tells it from other lines: its bytes, or the digest of a very long line, which is not kept twice.
    """

    value: dict[str, Any]
    number: int
    raw: bytes
    end: int
    is_long: bool


def read_json_lines(item: ImportItem) -> Iterator[Line | Problem]:
    """Yield an object or a problem for every line after the item's checkpoint; skips blank lines."""
    try:
        with open_source(item.file) as stream:
            offset, number = (item.checkpoint.offset, item.checkpoint.line) if item.checkpoint else (0, 0)
            stream.seek(offset)
            yield from stream_lines(item.file, stream, offset, number)
    except OSError as error:
        yield unreadable_problem(item, error)


def read_line_events(
    lines: Iterable[Line | Problem],
    line_events: Callable[[Line], Iterable[ReadEvent]],
    reader_state: Callable[[], str] = str,
    final_events: Callable[[], Iterable[ReadEvent]] = tuple,
) -> Iterator[ReadEvent]:
    """Yield the events of every line and the final ones, with a checkpoint every hundred lines and at the end.

    `reader_state` returns what the reader must know to continue from the current line. The value of a long line is
    cleared.
    """
    last: Line | None = None
    for line in lines:
        if isinstance(line, Problem):
            yield line
            continue
        last = line
        events = line_events(line)
        if line.is_long:
            # Only the messages have its texts now, and no reader reads them again: they are released when written.
            events = [
                event._replace(given_away=True) if isinstance(event, ImportedMessage) else event for event in events
            ]
            line.value.clear()
        yield from events
        if line.number % _LINES_PER_CHECKPOINT == 0:
            yield Checkpoint(line.end, line.number, reader_state())
    yield from final_events()
    if last is not None:
        yield Checkpoint(last.end, last.number, reader_state())


def stream_lines(file: Path, stream: BinaryIO, offset: int = 0, number: int = 0) -> Iterator[Line | Problem]:
    """Yield the lines of an open file whose next byte is at `offset`, after `number` lines."""
    while True:
        number += 1
        size, line = _read_line(file, stream, number, offset)
        if not size:
            return
        offset += size
        if line is not None:
            yield line


def _read_line(file: Path, stream: BinaryIO, number: int, offset: int) -> tuple[int, Line | Problem | None]:
    """Read a line and its size; None for a blank line. Of a very long line, few copies exist at the same time."""
    raw = stream.readline(MAX_LINE_BYTES)
    size, is_finished = len(raw), raw.endswith(b"\n")
    if size == MAX_LINE_BYTES and not is_finished:
        problem = Problem(file, number, f"the line has more than {MAX_LINE_BYTES // 1024 // 1024} MB")
        return size + _skip_line(stream), problem
    if not raw or raw.isspace():
        return size, None
    is_unfinished = not is_finished and raw.lstrip().startswith(b"{")
    is_long = size >= _LONG_LINE_BYTES
    kept = hashlib.sha256(raw).digest() if is_long else raw
    try:
        text = raw.decode("utf-8", "surrogatepass")
        del raw
        value = _decode_json(text)
    except (ValueError, RecursionError) as error:
        text = _UNFINISHED if is_unfinished else f"not JSON ({str(error)[:100]})"
        return size, Problem(file, number, text, unfinished=is_unfinished)
    if not isinstance(value, dict):
        return size, Problem(file, number, f"a JSON object is expected, not {type(value).__name__}")
    return size, Line(value, number, kept, offset + size, is_long)


def _skip_line(stream: BinaryIO) -> int:
    skipped = 0
    while raw := stream.readline(MAX_LINE_BYTES):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped


def settings_directories(settings: Path | None = None) -> list[Path]:
    """Return where programs keep their settings on Linux, macOS and Windows; `settings` replaces `~/.config`."""
    home = Path.home()
    return [settings or home / ".config", home / "Library" / "Application Support", home / "AppData" / "Roaming"]


def storage_directories(settings: Path | None = None) -> list[Path]:
    """Return the directories `User` of all editors; `settings` replaces `~/.config`."""
    found = [base / editor / "User" for base in settings_directories(settings) for editor in _EDITORS]
    return [*found, *(Path.home() / server / "data" / "User" for server in _SERVERS)]


def path_of_url(url: str) -> str | None:
    """Return the path of a `file:` URL; None for any other URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme != "file" or not parts.path:
        return None
    path = unquote(parts.path)
    # A drive on Windows is written as /c:/...
    return path[1:] if len(path) > 2 and path[2] == ":" else path
