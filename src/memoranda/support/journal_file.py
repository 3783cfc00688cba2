"""A journal file: one JSON object per line, each synced before the change that it describes is carried out.

This module knows only that lines are numbered, that a `void` line cancels the line it refers to, and that an `undo`
line undoes it. A line that cannot be read is skipped, and the other lines stay usable.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from memoranda.support.durable_files import append_private, read_file, write_private

_TAIL_BLOCK = 64 * 1024


class NumberedLine(Protocol):
    """What every line of a journal has: it is a dataclass whose fields are written as JSON."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def number(self) -> int: ...
    @property
    def action(self) -> str: ...
    @property
    def refers_to(self) -> int | None: ...


Line = TypeVar("Line", bound=NumberedLine)


class JournalFile(Generic[Line]):
    """The lines of one journal. Appending and purging need the lock of the directory that the journal describes."""

    OPTIONAL_FIELDS: ClassVar[frozenset[str]] = frozenset()
    """Fields that a line has only if they are not empty."""

    def __init__(self, path: Path, from_record: Callable[[Any], Line | None]) -> None:
        self._path = path
        self._from_record = from_record
        # The newest line and the identity of the file it was read from.
        self._newest: tuple[tuple[int, int, int], Line | None] = ((0, 0, 0), None)
        self._is_torn = False

    def last(self) -> Line | None:
        """The newest line, read from the end of the file."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(self._path))
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._newest[0] != identity:
            self._newest = (identity, self._read_last())
        return self._newest[1]

    def append(self, lines: Sequence[Line]) -> None:
        """Add lines durably, all of them or none."""
        self.last()
        # A line torn by a power cut gets a line end, so that the new lines stay readable.
        append_private(self._path, (b"\n" if self._is_torn else b"") + self._encode(lines))
        self._is_torn = False
        status = os.stat(self._path)
        self._newest = ((status.st_ino, status.st_size, status.st_mtime_ns), lines[-1])

    def changes(self) -> Iterator[Line]:
        """Every change from the oldest to the newest, without void ones."""
        everything = list(self._all())
        void = {line.refers_to for line in everything if line.action == "void"}
        return (line for line in everything if line.action != "void" and line.number not in void)

    def damaged_lines(self) -> list[int]:
        """The numbers of lines that cannot be read, for the doctor."""
        try:
            lines = read_file(self._path).split(b"\n")
        except FileNotFoundError:
            return []
        return [number for number, line in enumerate(lines, start=1) if line and self._decode(line) is None]

    def purge(self, through: int, base: Sequence[Line]) -> int:
        """Drop all changes up to a number, and void ones; the lines of `base` replace them."""
        changes = list(self.changes())
        if not self._path.exists():
            return 0
        kept = [change for change in changes if change.number > through]
        write_private(self._path, self._encode([*base, *kept]))
        return len(changes) - len(kept)

    def rewrite(self, change: Callable[[bytes], bytes | None]) -> int:
        """Replace lines, as they are in the file, or drop those for which `change` returns None; returns how many."""
        try:
            lines = read_file(self._path).split(b"\n")
        except FileNotFoundError:
            return 0
        changed = [change(line) if line else line for line in lines]
        count = sum(new != old for new, old in zip(changed, lines, strict=True))
        if count:
            write_private(self._path, b"\n".join(line for line in changed if line is not None))
        return count

    def _all(self) -> Iterator[Line]:
        self.last()
        try:
            with self._path.open("rb") as file:
                for raw in file:
                    if line := self._decode(raw):
                        yield line
        except FileNotFoundError:
            return

    def _read_last(self) -> Line | None:
        with self._path.open("rb") as file:
            end = file.seek(0, 2)
            block = _TAIL_BLOCK
            while True:
                start = max(0, end - block)
                file.seek(start)
                lines = file.read(end - start).split(b"\n")
                self._is_torn = lines[-1] != b""
                # Unless the block starts the file, its first piece may be half a line.
                for raw in reversed(lines if start == 0 else lines[1:]):
                    if line := self._decode(raw):
                        return line
                if start == 0:
                    return None
                block *= 4

    def _encode(self, lines: Sequence[Line]) -> bytes:
        records = [
            {name: value for name, value in asdict(line).items() if value or name not in self.OPTIONAL_FIELDS}
            for line in lines
        ]
        text = "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)
        # A session id of another program may contain half a surrogate pair, which UTF-8 cannot encode.
        return text.encode("utf-8", "backslashreplace")

    def _decode(self, raw: bytes) -> Line | None:
        try:
            return self._from_record(json.loads(raw))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def undone_numbers(changes: Iterable[NumberedLine]) -> set[int | None]:
    """The numbers of the changes that were undone; a change whose undo was itself undone counts again."""
    undone: set[int | None] = set()
    for change in reversed(list(changes)):
        if change.action == "undo" and change.number not in undone:
            undone.add(change.refers_to)
    return undone


def find_undoable(changes: Sequence[Line], number: int | None, is_undoable: Callable[[Line], bool]) -> Line | None:
    """The change with this number, or the latest that is not an undo; None when it was undone or cannot be undone."""
    undone = undone_numbers(changes)
    candidates = [change for change in changes if change.number not in undone and is_undoable(change)]
    if number is not None:
        return next((change for change in candidates if change.number == number), None)
    return next((change for change in reversed(candidates) if change.action != "undo"), None)
