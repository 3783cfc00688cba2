"""Files of JSON lines, read one line at a time: broken, endless and unfinished lines are named, never fatal."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from memoranda.importers.reader_protocol import Checkpoint, ImportItem, Problem, ReadEvent
from memoranda.importers.source_files import open_source

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
