"""A journal in a file: one line each, synced before the change that it describes is carried out.

A marker beside the file says how long the journal was after its last write, with the checksum of that much. A journal
only grows, so a file that is shorter, or begins with something else, has lost or changed lines.
"""

import errno
import logging
import os
import stat
from binascii import crc32
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from memoranda.storage.files.marker_file import MarkerFile
from memoranda.support.durable_files import append_private, read_file, sync_directory, write_private
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_TAIL_BLOCK = 64 * 1024
_Decoded = TypeVar("_Decoded")


class LineFile:
    """The lines of a journal in one file."""

    def __init__(self, path: Path) -> None:
        self.place = path
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


@dataclass(frozen=True, slots=True)
class JournalMarker:
    """`content` is the CRC-32 of the first `size` bytes; `broken` says that lines were lost before that."""

    size: int = 0
    content: int = 0
    broken: bool = False

    @classmethod
    def of(cls, content: bytes, *, broken: bool = False) -> "JournalMarker":
        return cls(len(content), crc32(content), broken)

    def find_problem(self, content: bytes | None) -> str:
        """What is wrong with the content of the journal, None if the file is missing; "" if nothing is."""
        if self.broken:
            return "has lost or changed lines, which was so before it was last rewritten"
        if content is None:
            return f"is missing, and had {self.size:,} bytes" if self.size else ""
        if len(content) < self.size:
            return f"has lost lines: it had {self.size:,} bytes, and has {len(content):,}"
        if crc32(content[: self.size]) != self.content:
            return "has lost or changed lines: it does not begin with what was written"
        return ""


class JournalMarkerFile:
    """The marker beside one journal. Changes need the lock of the journal, and log a failure instead of raising it."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._file = MarkerFile(journal, JournalMarker)

    def read(self) -> JournalMarker | None:
        """The marker; None if there is none, an empty one if it is damaged."""
        return self._file.read()

    def note_appended(self) -> None:
        """Note the lines that were added; an earlier loss stays recognisable."""
        with self._logged():
            marker = self.read() or JournalMarker()
            with self._journal.open("rb") as file:
                if file.seek(0, os.SEEK_END) < marker.size:
                    return
                file.seek(marker.size)
                added = file.read()
            size, content = marker.size + len(added), crc32(added, marker.content)
            self._file.overwrite(JournalMarker(size, content, marker.broken))

    def note_replaced(self, marker: JournalMarker) -> None:
        """Note the lines of a journal that was replaced."""
        with self._logged():
            self._file.overwrite(marker)

    def remove(self) -> None:
        """Remove the marker durably before the journal is replaced, because it describes the old lines."""
        with suppress(FileNotFoundError):
            os.unlink(self._file.path)
            sync_directory(self._file.path.parent)

    @contextmanager
    def _logged(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _log.info("%s could not be written, so lost lines may not be noticed: %s", self._file.path, error)
