"""The order of the words in each message, as one byte for each word: so a phrase is compared with few texts.

Positions of words would take more room than the rest of the index. A byte is enough to exclude nearly all messages that
have the words of a phrase apart or in another order. Those that seem to have it are compared with their texts.

The sequences of eight consecutive documents are one row: so few that reading the others beside one hardly matters, and
rows so small that they fill the pages of the file. Each sequence ends with a zero.
"""

import re
import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, count, groupby, islice
from operator import itemgetter
from zlib import crc32

from memoranda.search.index.doc_sets import BLOCK_BITS, DocSet, from_docs, intersection
from memoranda.search.index.tokenizer import is_unspaced

# As many as the bits of a byte, see `_chunks_of`.
CHUNK = 8
_AT_ONCE = 480
_MAX_CACHED = 1 << 15
_END, _BREAK = b"\0", b"\xff"
_VALUES = 254
_words_of = itemgetter(1)


class _ByteCache(dict[str, int]):
    """The bytes of tokens. Unlike `hash`, they are the same in every process."""

    def __missing__(self, token: str) -> int:
        if len(self) >= _MAX_CACHED:
            self.clear()
        byte = self[token] = 1 + crc32(token.encode()) % _VALUES
        return byte


_byte_of = _ByteCache()


def encode_sequence(texts: Iterable[Sequence[str]]) -> bytes:
    """The sequence of a document; the tokens of one text do not follow those of another."""
    return _BREAK.join([bytes(map(_byte_of.__getitem__, tokens)) for tokens in texts]) + _END


def phrase_bytes(phrase: Iterable[str]) -> list[bytes]:
    """What the sequence of every message with a phrase contains; tokens of unspaced scripts are in no sequence."""
    runs = (list(run) for unspaced, run in groupby(phrase, is_unspaced) if not unspaced)
    return [bytes(map(_byte_of.__getitem__, run)) for run in runs if len(run) > 1]


def write_sequences(connection: sqlite3.Connection, first: int, sequences: Sequence[bytes]) -> None:
    """Add the sequences of consecutive documents, which follow all others."""
    chunk, others = divmod(first, CHUNK)
    if others:
        # The row that has the last ones takes their places.
        ((_, words),) = _read(connection, (chunk,))
        sequences = [words, *([b""] * (others - 1)), *sequences]
    rows = (
        (number, b"".join(sequences[place : place + CHUNK]))
        for number, place in enumerate(range(0, len(sequences), CHUNK), chunk)
    )
    connection.executemany("INSERT OR REPLACE INTO sequences VALUES (?, ?)", rows)


def remove_sequences(connection: sqlite3.Connection, docs: Collection[int]) -> None:
    """Leave nothing of these documents but their places."""
    for chunk, removed in groupby(sorted(docs), lambda doc: doc // CHUNK):
        ((_, words),) = _read(connection, (chunk,))
        sequences = words.split(_END)
        for doc in removed:
            sequences[doc % CHUNK] = b""
        connection.execute("UPDATE sequences SET words = ? WHERE chunk = ?", (_END.join(sequences), chunk))


def check_sequences(connection: sqlite3.Connection, first: int, end: int) -> None:
    """Read the sequences of these documents; raises sqlite3.DatabaseError if one is missing."""
    for chunk, words in _read(connection, range(first // CHUNK, (end - 1) // CHUNK + 1)):
        if not min(CHUNK, end - chunk * CHUNK) <= words.count(_END) <= CHUNK:
            raise sqlite3.DatabaseError("a sequence of words is damaged")


def keep_with_sequences(connection: sqlite3.Connection, docs: DocSet, wanted: Iterable[bytes]) -> DocSet:
    """Those of the documents whose sequences contain everything that is wanted."""
    for tokens in wanted:
        found: list[int] = []
        expression: re.Pattern[bytes] | None = None
        for rows in _read_in_parts(connection, _chunks_of(docs)):
            expression = expression or _expression(tokens, rows[0][1])
            found += _docs_with(expression, rows)
        docs = intersection(docs, from_docs(found))
    return docs


def read_sequences(connection: sqlite3.Connection, docs: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The sequences of single documents."""
    by_chunk = {chunk: list(some) for chunk, some in groupby(sorted(docs), lambda doc: doc // CHUNK)}
    for chunk, words in _read(connection, by_chunk):
        sequences = words.split(_END)
        yield from ((doc, sequences[doc % CHUNK]) for doc in by_chunk[chunk])


def _chunks_of(docs: DocSet) -> Iterator[int]:
    """The chunks that have any of the documents."""
    for block in docs:
        yield from compress(count((block << BLOCK_BITS) // CHUNK), docs.flags(block))


def _expression(tokens: bytes, sample: bytes) -> re.Pattern[bytes]:
    """Finds tokens by the one that is rarest in a sample, which takes a third of the time of `bytes.find`."""
    rarest = min(range(len(tokens)), key=lambda place: sample.count(tokens[place]))
    before, after = tokens[: rarest + 1], tokens[rarest + 1 :]
    return re.compile(re.escape(before[-1:]) + b"(?<=%b)(?=%b)" % (re.escape(before), re.escape(after)))


def _docs_with(expression: re.Pattern[bytes], rows: Sequence[tuple[int, bytes]]) -> Iterator[int]:
    """The documents of some chunks in which something is found; looking through all at once is faster."""
    joined = b"".join(map(_words_of, rows))
    ends = list(accumulate(map(len, map(_words_of, rows))))
    for match in expression.finditer(joined):
        place = bisect_right(ends, match.start())
        chunk, words = rows[place]
        yield chunk * CHUNK + joined.count(_END, ends[place] - len(words), match.start())


def _read(connection: sqlite3.Connection, chunks: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The sequences of chunks; raises sqlite3.DatabaseError if some are missing."""
    return chain.from_iterable(_read_in_parts(connection, chunks))


def _read_in_parts(connection: sqlite3.Connection, chunks: Iterable[int]) -> Iterator[list[tuple[int, bytes]]]:
    rest = iter(chunks)
    while some := list(islice(rest, _AT_ONCE)):
        marks = ", ".join("?" * len(some))
        rows = connection.execute(f"SELECT chunk, words FROM sequences WHERE chunk IN ({marks})", some).fetchall()
        if len(rows) < len(some) or set(map(type, map(_words_of, rows))) != {bytes}:
            raise sqlite3.DatabaseError("a sequence of words is damaged")
        yield rows
