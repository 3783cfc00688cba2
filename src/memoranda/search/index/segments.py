"""Writes postings in segments, merges small segments into larger ones, and removes documents from them.

All of this happens within transactions of the caller. A segment has consecutive documents of one block. New documents
become a new segment; as soon as there are eight of about the same size, they become one, so a token is in few rows, and
a document is written again only when its segment has grown eightfold.
"""

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from memoranda.search.index import doc_sets
from memoranda.search.index.doc_sets import BLOCK, BLOCK_BITS, MAX_LISTED, decode_bits, encode, list_offsets
from memoranda.search.index.sequences import check_sequences, remove_sequences, write_sequences
from memoranda.search.index.vocabulary import is_listed, remove_words, write_words

_FAN_IN_BITS = 3
_FAN_IN = 1 << _FAN_IN_BITS
_OFFSET = BLOCK - 1
# Four pieces fit into a page.
_PIECE = 1_900
_OFFSET_BYTES = array("H").itemsize
# A complete block may stay in two segments: merging them would cost more than it saves.
_MAX_IN_BLOCK = 2
_token_of = itemgetter(0)


class Segment(NamedTuple):
    """The documents from `first` up to but without `end`, which were written between `oldest` and `newest`."""

    number: int
    first: int
    end: int
    oldest: float
    newest: float

    @property
    def block(self) -> int:
        return self.first >> BLOCK_BITS

    @property
    def offsets(self) -> tuple[int, int]:
        """The first offset within the block, and the one after the last."""
        return self.first & _OFFSET, (self.end - 1 & _OFFSET) + 1

    @property
    def tier(self) -> int:
        return ((self.end - self.first).bit_length() - 1) // _FAN_IN_BITS


class SegmentWriter:
    """Collects the tokens of new documents, and writes them as segments."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lists: defaultdict[str, array[int]] = defaultdict(partial(array, "H"))
        self._first = self._end = 0
        self._times: list[float] = []
        self._sequences: list[bytes] = []

    def add(self, doc: int, tokens: Iterable[str], sequence: bytes, time: float) -> None:
        """Add a document that is newer than all others; `tokens` has each token once."""
        if not self._times:
            self._first = doc
        elif doc >> BLOCK_BITS != self._first >> BLOCK_BITS:
            self.write()
            self._first = doc
        self._end = doc + 1
        self._times.append(time)
        self._sequences.append(sequence)
        offset = doc & _OFFSET
        for listed in map(self._lists.__getitem__, tokens):
            listed.append(offset)

    def write(self) -> None:
        """Write the collected documents, and merge what has become too many segments."""
        if not self._times:
            return
        (last,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM segments").fetchone()
        segment = Segment(last + 1, self._first, self._end, min(self._times), max(self._times))
        # Sorted, so that SQLite appends pages at the end of the table.
        _insert(self._connection, segment, sorted(self._lists.items()))
        write_sequences(self._connection, self._first, self._sequences)
        self._lists = defaultdict(partial(array, "H"))
        self._times, self._sequences = [], []
        _merge_small(self._connection, segment)


def read_segments(connection: sqlite3.Connection) -> list[Segment]:
    """All segments, the oldest documents first; raises sqlite3.DatabaseError if they do not follow each other."""
    found: list[Segment] = []
    end = 0
    for row in connection.execute("SELECT * FROM segments ORDER BY first"):
        _, first, last, *times = row
        if first != end or type(last) is not int or not first < last or not all(type(time) is float for time in times):
            raise sqlite3.DatabaseError("the list of segments is damaged")
        found.append(Segment._make(row))
        end = last
    return found


def purge(connection: sqlite3.Connection, max_segments: int) -> bool:
    """Remove dead documents from the postings of at most so many segments; returns whether there may be more."""
    rows = connection.execute("SELECT doc FROM dead ORDER BY doc").fetchall()
    dead = [doc for (doc,) in rows]
    if not dead:
        return False
    left = max_segments
    for segment in read_segments(connection):
        chosen = [doc for doc in dead if segment.first <= doc < segment.end]
        if not chosen:
            continue
        if not left:
            return True
        left -= 1
        _remove(connection, segment, chosen)
        remove_sequences(connection, chosen)
        connection.executemany("DELETE FROM dead WHERE doc = ?", ((doc,) for doc in chosen))
    return False


def _remove(connection: sqlite3.Connection, segment: Segment, dead: Collection[int]) -> None:
    """Rewrite the postings of a segment that have these documents."""
    first, end = segment.offsets
    offsets = {doc & _OFFSET for doc in dead}
    gone = doc_sets.from_docs(offsets)[0]
    changed: list[tuple[str, array[int] | int]] = []
    lists = connection.execute(
        "SELECT token, docs FROM postings WHERE segment = ? AND count <= ?", (segment.number, MAX_LISTED)
    )
    # Most tokens are in one message, so they are compared as bytes.
    single = {array("H", (offset,)).tobytes() for offset in offsets}
    for token, data in lists:
        if data in single if len(data) == _OFFSET_BYTES else not offsets.isdisjoint(memoryview(data).cast("H")):
            changed.append((token, array("H", (offset for offset in list_offsets(data) if offset not in offsets))))
    for token, count, data in _sets(connection, segment, MAX_LISTED):
        bits = decode_bits(count, data, first, end)
        if bits & gone:
            changed.append((token, bits & ~gone))
    connection.executemany(
        "DELETE FROM postings WHERE segment = ? AND token = ?", ((segment.number, token) for token, _ in changed)
    )
    _insert_sets(connection, segment, ((token, kept) for token, kept in changed if kept))
    remove_words(connection, segment.number, {token for token, kept in changed if not kept})


def _merge_small(connection: sqlite3.Connection, newest: Segment) -> None:
    """Merge the newest segments of a block if there are eight of one size, or if the block is complete."""
    block = newest.block
    segments = [segment for segment in read_segments(connection) if segment.block == block]
    if newest.end == (block + 1) << BLOCK_BITS:
        chosen = segments if len(segments) > _MAX_IN_BLOCK else []
    else:
        chosen = []
        for tier in range(BLOCK_BITS // _FAN_IN_BITS + 1):
            small: list[Segment] = []
            for segment in reversed(segments):
                if segment.tier > tier:
                    break
                small.append(segment)
            if len(small) >= _FAN_IN:
                chosen = small[::-1]
    if len(chosen) > 1:
        _merge(connection, chosen)


def _merge(connection: sqlite3.Connection, segments: list[Segment]) -> None:
    numbers = [segment.number for segment in segments]
    merged = Segment(
        max(numbers) + 1,
        segments[0].first,
        segments[-1].end,
        min(segment.oldest for segment in segments),
        max(segment.newest for segment in segments),
    )
    _insert(connection, merged, _merged_lists(connection, segments))
    marks = ", ".join("?" * len(numbers))
    for table in ("postings", "words"):
        connection.execute(f"DELETE FROM {table} WHERE segment IN ({marks})", numbers)
    connection.execute(f"DELETE FROM segments WHERE number IN ({marks})", numbers)


def _merged_lists(connection: sqlite3.Connection, segments: list[Segment]) -> Iterator[tuple[str, "array[int] | int"]]:
    rows = merge(*(_numbered_sets(connection, order, segment) for order, segment in enumerate(segments)))
    for token, parts in groupby(rows, _token_of):
        merged = array("H")
        bits = 0
        for _, order, count, data in parts:
            if count <= MAX_LISTED:
                merged.frombytes(data)
            else:
                bits |= decode_bits(count, data, *segments[order].offsets)
        yield token, bits | doc_sets.from_docs(merged).get(0, 0) if bits else merged


def _numbered_sets(
    connection: sqlite3.Connection, number: int, segment: Segment
) -> Iterator[tuple[str, int, int, bytes]]:
    return ((token, number, count, data) for token, count, data in _sets(connection, segment))


def _sets(connection: sqlite3.Connection, segment: Segment, above: int = 0) -> Iterator[tuple[str, int, bytes]]:
    """The tokens of a segment with more than `above` documents, in order, with their counts and stored sets."""
    rows = connection.execute(
        "SELECT token, count, docs FROM postings WHERE segment = ? AND count > ? ORDER BY token, piece",
        (segment.number, above),
    )
    pieces: list[bytes] = []
    last = ("", 0)
    for token, count, data in rows:
        if token != last[0]:
            if pieces:
                yield (*last, b"".join(pieces))
            pieces = []
            last = (token, count)
        pieces.append(data)
    if pieces:
        yield (*last, b"".join(pieces))


def _insert(connection: sqlite3.Connection, segment: Segment, lists: Iterable[tuple[str, "array[int] | int"]]) -> None:
    connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", segment)
    words: list[str] = []
    _insert_sets(connection, segment, _collect_words(lists, words))
    write_words(connection, segment.number, words)


def _collect_words(
    lists: Iterable[tuple[str, "array[int] | int"]], words: list[str]
) -> Iterator[tuple[str, "array[int] | int"]]:
    """Pass the sets on, and add their words to a list."""
    for token, docs in lists:
        if is_listed(token):
            words.append(token)
        yield token, docs


def _insert_sets(
    connection: sqlite3.Connection, segment: Segment, lists: Iterable[tuple[str, "array[int] | int"]]
) -> None:
    connection.executemany("INSERT INTO postings VALUES (?, ?, ?, ?, ?)", _stored_rows(segment, lists))


def _stored_rows(
    segment: Segment, lists: Iterable[tuple[str, "array[int] | int"]]
) -> Iterator[tuple[int, str, int, int, bytes]]:
    number, (first, end) = segment.number, segment.offsets
    for token, listed in lists:
        count, data = encode(listed, first, end)
        if len(data) <= _PIECE:
            yield number, token, 0, count, data
        else:
            for piece, start in enumerate(range(0, len(data), _PIECE)):
                yield number, token, piece, count, data[start : start + _PIECE]


def check_segment(connection: sqlite3.Connection, segment: Segment) -> None:
    """Read all postings of a segment; raises sqlite3.DatabaseError if one is not what it says."""
    first, end = segment.offsets
    previous = ""
    for token, count, data in _sets(connection, segment):
        if count <= MAX_LISTED:
            listed = list_offsets(data)
            right = len(listed) == count > 0 and first <= listed[0] and listed[-1] < end
            right = right and list(listed) == sorted(set(listed))
        else:
            bits = decode_bits(count, data, first, end)
            right = bits.bit_count() == count and bits >> end == 0 and not bits & ((1 << first) - 1)
        if not right or token <= previous:
            raise sqlite3.DatabaseError("a set of documents is damaged")
        previous = token
    check_sequences(connection, segment.first, segment.end)
