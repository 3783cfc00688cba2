"""The pages that a SQLite log holds: those of complete transactions, each as it was last."""

import os
import struct
import sys
from array import array
from dataclasses import dataclass, field
from typing import BinaryIO

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
# The last bit says in which order the bytes of a number were summed up.
_MAGIC = 0x377F0682
_SIZES = {1 << power for power in range(9, 17)}
_SUMMED_OF_HEADER, _SUMMED_OF_FRAME = 24, 8
_MASK = 0xFFFFFFFF

_Sum = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WalFrames:
    """`places` says where in the log a page stands, `size` how large a page is, `count` how many the file has then."""

    size: int = 0
    count: int = 0
    places: dict[int, int] = field(default_factory=dict)
    log: BinaryIO | None = None

    def read(self, number: int) -> bytes:
        """A page that is in `places`."""
        if self.log is None:
            return b""
        self.log.seek(self.places[number])
        return self.log.read(self.size)


def read_frames(log: BinaryIO) -> WalFrames:
    """What SQLite would take from a log; nothing from where it is damaged on, nor what an earlier use of it left."""
    header = log.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return WalFrames()
    magic, _, size, _, *salts, first, second = _HEADER.unpack(header)
    little = magic == _MAGIC
    total = _summed((0, 0), header[:_SUMMED_OF_HEADER], little)
    if magic | 1 != _MAGIC | 1 or size not in _SIZES or total != (first, second):
        return WalFrames()
    count = 0
    places: dict[int, int] = {}
    pending: dict[int, int] = {}
    while len(frame := log.read(_FRAME.size + size)) == _FRAME.size + size:
        number, count_after, *its_salts, first, second = _FRAME.unpack_from(frame)
        total = _summed(total, frame[:_SUMMED_OF_FRAME] + frame[_FRAME.size :], little)
        if its_salts != salts or total != (first, second) or number == 0:
            break
        pending[number] = log.seek(0, os.SEEK_CUR) - size
        # Only the last frame of a transaction says how large the file is after it.
        if count_after:
            count = count_after
            places.update(pending)
            pending.clear()
    return WalFrames(size, count, places, log) if places else WalFrames()


def _summed(total: _Sum, content: bytes, little: bool) -> _Sum:
    numbers = array("I", content)
    if little != (sys.byteorder == "little"):
        numbers.byteswap()
    one, two = total
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + even + two) & _MASK
        two = (two + odd + one) & _MASK
    return one, two
