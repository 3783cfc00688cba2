"""A journal in a file: one line each, synced before the change that it describes is carried out.

A marker beside the file says how much of it there was, so that lost lines are noticed (see `journal_marker`).
"""

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from memoranda.storage.files.journal import Journal, Line
from memoranda.storage.files.journal_marker import JournalMarker, JournalMarkerFile
from memoranda.support.durable_files import append_private, read_file, write_private

_TAIL_BLOCK = 64 * 1024
_Decoded = TypeVar("_Decoded")


class JournalFile(Journal[Line]):
    """A journal whose lines are in a file; appending and purging need the lock of its directory."""

    def __init__(self, path: Path, from_record: Callable[[Any], Line | None], fields: Collection[str] = ()) -> None:
        super().__init__(LineFile(path), from_record, fields)


class LineFile:
    """The lines of a journal in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marker = JournalMarkerFile(path)
        # The newest line and the identity of the file it was read from.
        self._newest: tuple[tuple[int, int, int], Any] = ((0, 0, 0), None)

    def last(self, decode: Callable[[bytes], _Decoded | None]) -> _Decoded | None:
        """The newest line that can be read, from the end of the file."""
        try:
            identity = self._identity()
        except FileNotFoundError:
            return None
        if self._newest[0] != identity:
            newest = next((line for raw in self._read_backwards() if (line := decode(raw)) is not None), None)
            self._newest = (identity, newest)
        found: _Decoded | None = self._newest[1]
        return found

    def append(self, lines: Sequence[bytes]) -> None:
        # A line torn by a power cut gets a line end, so that the new lines stay readable.
        append_private(self._path, (b"\n" if self._is_torn() else b"") + _join(lines))
        self._marker.note_appended()

    def read(self) -> list[bytes]:
        try:
            self._identity()
            lines = read_file(self._path).split(b"\n")
        except FileNotFoundError:
            return []
        return lines if lines[-1] else lines[:-1]

    def contains(self, part: bytes) -> bool:
        try:
            return part in read_file(self._path)
        except FileNotFoundError:
            return False

    def replace(self, lines: Sequence[bytes]) -> None:
        broken, content = bool(self.find_loss()), _join(lines)
        self._marker.remove()
        write_private(self._path, content)
        self._marker.note_replaced(JournalMarker.of(content, broken=broken))

    def find_loss(self) -> str:
        while True:
            marker = self._marker.read()
            problem = marker.find_problem(self._content()) if marker is not None else ""
            # A writer may have replaced the journal and its marker just now.
            if not problem or self._marker.read() == marker:
                return problem

    def accept(self) -> None:
        content = self._content()
        if content is not None or self._marker.read() is not None:
            self._marker.note_replaced(JournalMarker.of(content or b""))

    def _content(self) -> bytes | None:
        try:
            self._identity()
            return read_file(self._path)
        except FileNotFoundError:
            return None

    def _identity(self) -> tuple[int, int, int]:
        status = os.stat(self._path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(self._path))
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def _is_torn(self) -> bool:
        """Whether the last line has no end."""
        try:
            if not self._identity()[1]:
                return False
        except FileNotFoundError:
            return False
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def _read_backwards(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            block = _TAIL_BLOCK
            while True:
                start = max(0, end - block)
                file.seek(start)
                lines = file.read(end - start).split(b"\n")
                # Unless the block starts the file, its first piece may be half a line.
                yield from reversed(lines if start == 0 else lines[1:])
                if start == 0:
                    return
                block *= 4


def _join(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
