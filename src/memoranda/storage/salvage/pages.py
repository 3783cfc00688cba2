"""Reads the pages of a SQLite file and of its write-ahead log one by one, whatever is damaged.

SQLite follows links from page to page and does not reach rows after a damaged page. `Pages` reads every page by itself.
It uses the latest version of a page in a complete transaction of the log, as SQLite does, so that deleted rows do not
return. It trusts no number in a page to decide how much to read. The format is described at
sqlite.org/fileformat2.html.
"""

import os
import struct
import sys
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from memoranda.storage.orphaned_wal import wal_path
from memoranda.support.lazy_dataclass import dataclass

_WAL_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
# The last bit is the byte order of the checksums.
_WAL_MAGIC = 0x377F0682
_SUMMED_OF_HEADER, _SUMMED_OF_FRAME = 24, 8
_MASK = 0xFFFFFFFF

_Sum = tuple[int, int]

TABLE_LEAF, TABLE_INNER = 13, 5
_HEADERS = {TABLE_LEAF: 8, TABLE_INNER: 12}
# The first page starts with the header of the database.
FILE_HEADER = 100
_MAGIC = b"SQLite format 3\0"
# The largest first, when the size must be guessed: a page may look like one of a smaller size, but none like a larger.
_SIZES = tuple(1 << power for power in range(16, 8, -1))
_MIN_USABLE = 480
# The minimum size of a cell with its pointer.
_MIN_CELL = 6
_ENCODINGS = {1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}
_NUMBER = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class WalFrames:
    """The pages in a log: `offsets` by page number; `size` is the page size, `count` the pages of the whole file."""

    size: int = 0
    count: int = 0
    offsets: dict[int, int] = field(default_factory=dict)
    log: BinaryIO | None = None

    def read(self, number: int) -> bytes:
        """The content of a page that is in `offsets`."""
        if self.log is None:
            return b""
        self.log.seek(self.offsets[number])
        return self.log.read(self.size)


def read_frames(log: BinaryIO) -> WalFrames:
    """The frames that SQLite would use: none after damage, and none that an earlier use of the log left."""
    header = log.read(_WAL_HEADER.size)
    if len(header) < _WAL_HEADER.size:
        return WalFrames()
    magic, _, size, _, *salts, first, second = _WAL_HEADER.unpack(header)
    little = magic == _WAL_MAGIC
    total = _frame_checksum((0, 0), header[:_SUMMED_OF_HEADER], little)
    if magic | 1 != _WAL_MAGIC | 1 or size not in _SIZES or total != (first, second):
        return WalFrames()
    count = 0
    offsets: dict[int, int] = {}
    pending: dict[int, int] = {}
    while len(frame := log.read(_FRAME.size + size)) == _FRAME.size + size:
        number, count_after, *frame_salts, first, second = _FRAME.unpack_from(frame)
        total = _frame_checksum(total, frame[:_SUMMED_OF_FRAME] + frame[_FRAME.size :], little)
        if frame_salts != salts or total != (first, second) or number == 0:
            break
        pending[number] = log.seek(0, os.SEEK_CUR) - size
        # Only the last frame of a transaction gives the size of the file after it.
        if count_after:
            count = count_after
            offsets.update(pending)
            pending.clear()
    return WalFrames(size, count, offsets, log) if offsets else WalFrames()


def _frame_checksum(total: _Sum, content: bytes, little: bool) -> _Sum:
    numbers = array("I", content)
    if little != (sys.byteorder == "little"):
        numbers.byteswap()
    one, two = total
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + even + two) & _MASK
        two = (two + odd + one) & _MASK
    return one, two


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of the file; `free` is the first page of the list of free pages."""

    size: int = 0
    reserved: int = 0
    encoding: str = "utf-8"
    count: int = 0
    free: int = 0


class Pages:
    """The pages of a file by number, from 1; `usable` is how many bytes of a page contain data."""

    def __init__(self, file: BinaryIO, log: WalFrames) -> None:
        self._file = file
        self._log = log
        self._end = file.seek(0, os.SEEK_END)
        header = _header(log.read(1) if 1 in log.offsets else self._read(0, FILE_HEADER))
        self._size = log.size or header.size or self._guess_size()
        self._in_file = -(-self._end // self._size)
        # A damaged count must not exceed the pages that exist.
        self._count = min(log.count or header.count or self._in_file, max(self._in_file, *log.offsets, 0))
        self.usable = self._size - header.reserved
        self.encoding = header.encoding
        self.free = self._free_pages(header.free)

    def __len__(self) -> int:
        """The maximum number of pages."""
        return self._in_file + len(self._log.offsets)

    def numbers(self) -> Iterator[int]:
        """The numbers of all pages that exist in the file or the log."""
        end = min(self._in_file, self._count)
        return chain(range(1, end + 1), sorted(number for number in self._log.offsets if end < number <= self._count))

    def read(self, number: int) -> bytes:
        """The content of a page; shorter or empty if the file ends early."""
        if not 0 < number <= self._count:
            return b""
        page = (
            self._log.read(number) if number in self._log.offsets else self._read((number - 1) * self._size, self._size)
        )
        return page[: self.usable]

    def tree(self, root: int) -> set[int]:
        """The pages that can be reached from the root page of a table, including the root."""
        reached: set[int] = set()
        pending = {root}
        while pending:
            number = pending.pop()
            if page := self.read(number):
                reached.add(number)
                pending.update(
                    child
                    for child in _children(page, FILE_HEADER if number == 1 else 0)
                    if child <= self._count and child not in reached
                )
        return reached

    def _read(self, offset: int, length: int) -> bytes:
        if offset >= self._end:
            return b""
        self._file.seek(offset)
        return self._file.read(length)

    def _guess_size(self) -> int:
        """The first page size with which some page looks filled from its end, as SQLite fills pages."""
        for size in _SIZES:
            if any(_is_filled(self._read(offset, size), size) for offset in range(0, self._end, size)):
                return size
        return _SIZES[0]

    def _free_pages(self, first: int) -> set[int]:
        """The free pages; whatever they still contain was deleted."""
        free: set[int] = set()
        number = first
        while number not in free and len(page := self.read(number)) == self.usable:
            after, length = struct.unpack_from(">2I", page)
            if length > self.usable // 4 - 2 or after > self._count:
                break
            free.add(number)
            free.update(leaf for leaf in struct.unpack_from(f">{length}I", page, 8) if leaf <= self._count)
            number = after
        return free


@contextmanager
def open_pages(path: Path) -> Iterator[Pages]:
    """Open the pages of a file and of its log. Not for a file in use: closing it would drop SQLite's locks."""
    log = wal_path(path)
    with ExitStack() as opened:
        file = opened.enter_context(path.open("rb"))
        frames = read_frames(opened.enter_context(log.open("rb"))) if log.exists() else WalFrames()
        yield Pages(file, frames)


def cells(page: bytes, start: int = 0) -> tuple[int, ...]:
    """The offsets of the cells of a table page, from the list after the page header at `start`."""
    header = start + _HEADERS.get(page[start], len(page)) if len(page) > start else len(page)
    room = len(page) - header
    if room <= 0:
        return ()
    (count,) = struct.unpack_from(">H", page, start + 3)
    return struct.unpack_from(f">{min(count, room // _MIN_CELL)}H", page, header)


def number_at(content: bytes, offset: int) -> tuple[int, int]:
    """A varint of one to nine bytes and the offset after it; returns a number too large for a truncated varint."""
    value = 0
    for count, byte in enumerate(content[offset : offset + 9], 1):
        if count == 9:
            return (value << 8) | byte, offset + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, offset + count
    return 1 << 64, len(content)


def _children(page: bytes, start: int) -> Iterator[int]:
    if len(page) <= start or page[start] != TABLE_INNER:
        return
    for offset in (start + 8, *cells(page, start)):
        if offset + _NUMBER.size <= len(page):
            yield _NUMBER.unpack_from(page, offset)[0]


def _header(first: bytes) -> _Header:
    if len(first) < FILE_HEADER or not first.startswith(_MAGIC):
        return _Header()
    (size,) = struct.unpack_from(">H", first, 16)
    size = 65536 if size == 1 else size
    if size not in _SIZES:
        return _Header()
    reserved = first[20] if size - first[20] >= _MIN_USABLE else 0
    changed, count, free, encoding, valid_for = (_NUMBER.unpack_from(first, at)[0] for at in (24, 28, 32, 56, 92))
    # The page count is valid only if the last program that changed the file kept it up to date.
    return _Header(size, reserved, _ENCODINGS.get(encoding, "utf-8"), count if changed == valid_for else 0, free)


def _is_filled(page: bytes, size: int) -> bool:
    """Whether a leaf page has cells, all inside it and at least one of them in its second half."""
    offsets = cells(page) if len(page) == size and page[0] == TABLE_LEAF else ()
    return bool(offsets) and min(offsets) > _HEADERS[TABLE_LEAF] and size // 2 <= max(offsets) < size
