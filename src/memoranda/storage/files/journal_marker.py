"""The marker of a journal file: how long the journal was after its last write, and the checksum of that much.

A journal only grows, so a file that is shorter, or begins with something else, has lost or changed lines.
"""

import logging
import os
from binascii import crc32
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from memoranda.storage.files.marker_file import MarkerFile
from memoranda.support.durable_files import sync_directory

_log = logging.getLogger(__name__)


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
        self._file = MarkerFile(journal.with_name(f"{journal.stem}.marker.json"))

    def read(self) -> JournalMarker | None:
        """The marker; None if there is none, or if it is damaged."""
        values = self._file.read()
        try:
            return None if values is None else JournalMarker(**values)
        except TypeError:
            # A later version wrote it.
            return None

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
            self._file.write(asdict(JournalMarker(size, content, marker.broken)))

    def note_replaced(self, marker: JournalMarker) -> None:
        """Note the lines of a journal that was replaced."""
        with self._logged():
            self._file.write(asdict(marker))

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
