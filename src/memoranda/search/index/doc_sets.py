"""Sets of documents: how the index stores them, and what a search does with them.

A document is an indexed message or title; documents are numbered in the order in which they were indexed. Numbers are
divided into blocks of 65,536, and within a block a set is one integer with a bit per document: AND, OR and counting of
a whole block are then single operations of a few microseconds. Stored sets have one of three forms, whichever is
small and quick to read: a list of offsets if there are few, compressed bits if they are sparse, or plain bits.
"""

import re
import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

BLOCK_BITS = 16
BLOCK = 1 << BLOCK_BITS
_OFFSET = BLOCK - 1
_BLOCK_BYTES = BLOCK >> 3


class DocSet(dict[int, int]):
    """The bits of each block that has any. Sets are never changed after they were made."""

    __slots__ = ("_flags",)

    def __init__(
        self, bits: Mapping[int, int] = MappingProxyType({}), flags: Mapping[int, bytes] | None = None
    ) -> None:
        """`flags` are the same bits as bytes, of some blocks: reading single documents from an integer is slow."""
        super().__init__(bits)
        self._flags = {} if flags is None else dict(flags)

    def flags(self, block: int) -> bytes:
        """The bits of a block as bytes, without zeros at the end."""
        found = self._flags.get(block)
        if found is None:
            bits = self.get(block, 0)
            found = self._flags[block] = bits.to_bytes((bits.bit_length() + 7) >> 3, "little")
        return found

    def keep(self, docs: Iterable[int]) -> list[int]:
        """Those of the documents that are in the set."""
        last, size, data = -1, 0, b""
        found: list[int] = []
        for doc in docs:
            if doc >> BLOCK_BITS != last:
                last = doc >> BLOCK_BITS
                data = self.flags(last)
                size = len(data)
            offset = (doc & _OFFSET) >> 3
            if offset < size and data[offset] & _BIT[doc & 7]:
                found.append(doc)
        return found

    def has_doc(self, doc: int) -> bool:
        data = self.flags(doc >> BLOCK_BITS)
        offset = (doc & _OFFSET) >> 3
        return offset < len(data) and bool(data[offset] & _BIT[doc & 7])


Run = tuple[int, int]
"""Consecutive documents: the first, and the one after the last."""

MAX_LISTED = 256
# Up to so many bits of a block are read one by one, which is then faster than reading all bytes.
_FEW_IN_BLOCK = 10
# Sets of fewer than one document in eight are compressed. A denser one would hardly become smaller.
_COMPRESSED_SHARE = 8
# Shorter runs of documents are looked up one by one.
_MIN_RUN = 3
_NOT_ZERO = re.compile(rb"[^\0]", re.DOTALL)
_BIT = tuple(1 << bit for bit in range(8))
_OFFSETS = tuple(tuple(bit for bit in range(7, -1, -1) if byte >> bit & 1) for byte in range(256))


def encode(docs: "array[int] | int", first: int, end: int) -> tuple[int, bytes]:
    """The count and the stored form of a set; it is rising offsets or bits within a block, from `first` until `end`."""
    if isinstance(docs, int):
        count = docs.bit_count()
        if count <= MAX_LISTED:
            return count, to_offsets(docs).tobytes()
        flags = (docs >> (first & ~7)).to_bytes(byte_size(first, end), "little")
    else:
        count = len(docs)
        if count <= MAX_LISTED:
            return count, docs.tobytes()
        start = first >> 3
        filled = bytearray(byte_size(first, end))
        for offset in docs:
            filled[(offset >> 3) - start] |= _BIT[offset & 7]
        flags = bytes(filled)
    if count * _COMPRESSED_SHARE <= 8 * len(flags):
        packer = zlib.compressobj(strategy=zlib.Z_RLE)
        packed = packer.compress(flags) + packer.flush()
        if len(packed) < len(flags):
            return count, packed
    return count, flags


def decode(count: int, data: bytes, first: int, end: int) -> bytes:
    """The bits of a stored set within its block, as bytes; raises sqlite3.DatabaseError if it is damaged."""
    if count <= MAX_LISTED:
        offsets = list_offsets(data)
        flags = bytearray((max(offsets, default=0) >> 3) + 1)
        for offset in offsets:
            flags[offset >> 3] |= _BIT[offset & 7]
        return bytes(flags)
    if len(data) < byte_size(first, end):
        try:
            data = zlib.decompress(data, bufsize=_BLOCK_BYTES)
        except zlib.error as error:
            raise sqlite3.DatabaseError("a set of documents is damaged") from error
    return bytes(first >> 3) + data if first >> 3 else data


def decode_bits(count: int, data: bytes, first: int, end: int) -> int:
    """The bits of a stored set within its block, as an integer."""
    return int.from_bytes(decode(count, data, first, end), "little")


def list_offsets(data: bytes) -> "array[int]":
    """The offsets of a stored list."""
    offsets = array("H")
    try:
        offsets.frombytes(data)
    except ValueError as error:
        raise sqlite3.DatabaseError("a list of documents is damaged") from error
    return offsets


def byte_size(first: int, end: int) -> int:
    """How many bytes the plain bits of a segment take."""
    return ((end - 1) >> 3) - (first >> 3) + 1


def to_offsets(bits: int) -> "array[int]":
    """The offsets of the bits that are set, rising."""
    return array("H", falling_offsets(bits)[::-1])


def falling_offsets(bits: int, limit: int | None = None) -> list[int]:
    """The offsets of the bits that are set, the highest first."""
    data = bits.to_bytes((bits.bit_length() + 7) >> 3, "big")
    top = (len(data) - 1) << 3
    # Each byte that is not zero has at least one.
    starts = [match.start() for match in islice(_NOT_ZERO.finditer(data), limit)]
    return [top - (start << 3) + bit for start in starts for bit in _OFFSETS[data[start]]][:limit]


def newest(docs: DocSet, limit: int | None = None) -> Iterator[int]:
    """The documents of a set, the newest first."""
    left = limit
    for block in sorted(docs, reverse=True):
        offsets = falling_offsets(docs[block], left)
        base = block << BLOCK_BITS
        for offset in offsets:
            yield base + offset
        if left is not None:
            left -= len(offsets)
            if left <= 0:
                return


def newest_of_few(docs: DocSet) -> Iterator[int]:
    """Like `newest`, faster if a block has few documents."""
    for block in sorted(docs, reverse=True):
        base = block << BLOCK_BITS
        for offset in offsets_of_few(docs[block]):
            yield base + offset


def from_docs(docs: Iterable[int]) -> DocSet:
    """The set of these documents."""
    flags: dict[int, bytearray] = {}
    for doc in docs:
        block, offset = doc >> BLOCK_BITS, doc & _OFFSET
        if block not in flags:
            flags[block] = bytearray(_BLOCK_BYTES)
        flags[block][offset >> 3] |= _BIT[offset & 7]
    return DocSet({block: int.from_bytes(flags[block], "little") for block in flags})


def union(sets: Sequence[DocSet]) -> DocSet:
    if len(sets) == 1:
        return sets[0]
    found = DocSet()
    for docs in sets:
        for block, bits in docs.items():
            found[block] = found.get(block, 0) | bits
    return found


def intersection(left: DocSet, right: DocSet) -> DocSet:
    return DocSet({block: both for block, bits in left.items() if (both := bits & right.get(block, 0))})


def difference(left: DocSet, right: DocSet) -> DocSet:
    # `bits & ~other` would take longer: Python computes with a negative number in several steps.
    return DocSet({block: rest for block, bits in left.items() if (rest := bits ^ (bits & right.get(block, 0)))})


def count_docs(docs: DocSet) -> int:
    return sum(bits.bit_count() for bits in docs.values())


def to_runs(docs: Iterable[int]) -> list[Run]:
    """Rising documents as runs of consecutive ones, each within a block."""
    runs: list[Run] = []
    first = end = -1
    for doc in docs:
        if doc != end or not doc & _OFFSET:
            if end >= 0:
                runs.append((first, end))
            first = doc
        end = doc + 1
    return [*runs, (first, end)] if end >= 0 else runs


def masks_of(docs: Sequence[int], sets: Sequence[DocSet], allowed: DocSet) -> dict[int, int]:
    """Which of the sets contain each of the documents, as bits; without those that are in none or not allowed.

    The documents are rising and mostly consecutive.
    """
    masks: dict[int, int] = {}
    by_block: dict[int, list[tuple[int, bytes]]] = {}
    single: list[int] = []
    for first, end in to_runs(docs):
        if end - first < _MIN_RUN:
            single += range(first, end)
            continue
        block, low = first >> BLOCK_BITS, first & _OFFSET
        if block not in by_block:
            by_block[block] = [(1 << n, some.flags(block)) for n, some in enumerate(sets) if block in some]
        part, shift = slice(low >> 3, (low + end - first + 7) >> 3), low & 7
        possible = int.from_bytes(allowed.flags(block)[part], "little") >> shift & (1 << end - first) - 1
        for bit, flags in by_block[block] if possible else ():
            bits = int.from_bytes(flags[part], "little") >> shift & possible
            while bits:
                lowest = bits & -bits
                bits ^= lowest
                doc = first + lowest.bit_length() - 1
                masks[doc] = masks.get(doc, 0) | bit
    single = allowed.keep(single)
    for number, some in enumerate(sets) if single else ():
        for doc in some.keep(single):
            masks[doc] = masks.get(doc, 0) | 1 << number
    return masks


def offsets_of_few(bits: int) -> Iterator[int]:
    """The offsets of the bits that are set, the highest first; faster than `falling_offsets` if they are few."""
    while bits:
        offset = bits.bit_length() - 1
        yield offset
        bits ^= 1 << offset


class WeighedDocs:
    """Documents by the sum of their weights.

    The sums of a block are kept bit by bit, each bit of all documents in one integer, and added as a circuit would: the
    whole store is weighed in some hundred operations.
    """

    def __init__(
        self, weighted: Sequence[tuple[DocSet, int]], allowed: DocSet, preferred: tuple[DocSet, int] | None = None
    ) -> None:
        """Weights are positive. Documents that have any weight and are `preferred` get that weight in addition."""
        every = weighted if preferred is None else [*weighted, preferred]
        self._height = sum(weight for _, weight in every).bit_length()
        self._preferred = preferred
        self._sums: dict[int, list[int]] = {}
        self.any = DocSet()
        """The documents that have any weight."""
        for block in set().union(*(docs for docs, _ in weighted)):
            if mask := allowed.get(block, 0):
                self._weigh(block, [(bits, weight) for docs, weight in weighted if (bits := docs.get(block, 0) & mask)])

    def _weigh(self, block: int, weighted: list[tuple[int, int]]) -> None:
        sums = [0] * self._height
        some = 0
        for bits, weight in weighted:
            some |= bits
            _add(sums, bits, weight)
        if some:
            if self._preferred is not None:
                docs, weight = self._preferred
                _add(sums, docs.get(block, 0) & some, weight)
            self._sums[block] = sums
            self.any[block] = some

    def heaviest(self, among: DocSet, limit: int) -> list[int]:
        """The heaviest of these documents, roughly in order; of those with the lowest sum, the newest."""
        found: list[int] = []
        rest = among if among is self.any else intersection(self.any, among)
        for place in range(self._height - 1, -1, -1):
            upper = DocSet({block: high for block, bits in rest.items() if (high := bits & self._sums[block][place])})
            if not upper:
                continue
            count = count_docs(upper)
            if len(found) + count > limit:
                rest = upper
            else:
                found += newest(upper) if count > _FEW_IN_BLOCK * len(upper) else newest_of_few(upper)
                rest = DocSet({block: low for block, bits in rest.items() if (low := bits ^ upper.get(block, 0))})
        found += newest(rest, limit - len(found))
        return found


def _add(sums: list[int], bits: int, weight: int) -> None:
    """Add a weight to the sums of some documents of a block."""
    for place in range(weight.bit_length()):
        if weight >> place & 1:
            carry, at = bits, place
            while carry:
                sums[at], carry = sums[at] ^ carry, sums[at] & carry
                at += 1
