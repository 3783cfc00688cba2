"""Reads the pages of complete transactions from a SQLite write-ahead log, each in its latest version."""

import os
import struct
import sys
from array import array
from dataclasses import dataclass, field
from typing import BinaryIO

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
# The last bit is the byte order of the checksums.
_MAGIC = 0x377F0682
_SIZES = {1 << power for power in range(9, 17)}
_SUMMED_OF_HEADER, _SUMMED_OF_FRAME = 24, 8
_MASK = 0xFFFFFFFF

_Sum = tuple[int, int]


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
    header = log.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return WalFrames()
    magic, _, size, _, *salts, first, second = _HEADER.unpack(header)
    little = magic == _MAGIC
    total = _checksum((0, 0), header[:_SUMMED_OF_HEADER], little)
    if magic | 1 != _MAGIC | 1 or size not in _SIZES or total != (first, second):
        return WalFrames()
    count = 0
    offsets: dict[int, int] = {}
    pending: dict[int, int] = {}
    while len(frame := log.read(_FRAME.size + size)) == _FRAME.size + size:
        number, count_after, *frame_salts, first, second = _FRAME.unpack_from(frame)
        total = _checksum(total, frame[:_SUMMED_OF_FRAME] + frame[_FRAME.size :], little)
        if frame_salts != salts or total != (first, second) or number == 0:
            break
        pending[number] = log.seek(0, os.SEEK_CUR) - size
        # Only the last frame of a transaction gives the size of the file after it.
        if count_after:
            count = count_after
            offsets.update(pending)
            pending.clear()
    return WalFrames(size, count, offsets, log) if offsets else WalFrames()


def _checksum(total: _Sum, content: bytes, little: bool) -> _Sum:
    numbers = array("I", content)
    if little != (sys.byteorder == "little"):
        numbers.byteswap()
    one, two = total
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + even + two) & _MASK
        two = (two + odd + one) & _MASK
    return one, two
