"""The order of the words in each message, as one byte for each word: so a phrase is compared with few texts.

Positions of words would take more room than the rest of the index. A byte is enough to exclude nearly all messages that
have the words of a phrase apart or in another order. Those that seem to have it are compared with their texts.

The sequences of `CHUNK` consecutive documents are in one row as soon as there are so many, so that even for a phrase of
frequent words few rows are read, and `bytes.find` does the work. Each sequence ends with a zero.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from zlib import crc32

from memoranda.search.index.doc_sets import BLOCK_BITS, DocSet, from_docs, intersection, to_runs
from memoranda.search.index.tokenizer import is_unspaced

CHUNK_BITS = 7
CHUNK = 1 << CHUNK_BITS
_CHUNK_BYTES = CHUNK >> 3
_MAX_CACHED = 1 << 15
_END, _BREAK = b"\0", b"\xff"
_VALUES = 254


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
    start = 0
    while start < len(sequences):
        end = start + CHUNK - (first + start) % CHUNK
        connection.execute("INSERT INTO sequences VALUES (?, ?)", (first + start, b"".join(sequences[start:end])))
        if start + CHUNK > end <= len(sequences):
            _write_chunk(connection, (first + start) // CHUNK, _read_chunk(connection, (first + start) // CHUNK))
        start = end


def remove_sequences(connection: sqlite3.Connection, docs: Collection[int]) -> None:
    """Leave nothing of these documents but their places."""
    for chunk, removed in groupby(sorted(docs), lambda doc: doc // CHUNK):
        sequences = _read_chunk(connection, chunk).split(_END)
        for doc in removed:
            sequences[doc % CHUNK] = b""
        _write_chunk(connection, chunk, _END.join(sequences))


def check_sequences(connection: sqlite3.Connection, first: int, end: int) -> None:
    """Read the sequences of these documents; raises sqlite3.DatabaseError if one is missing."""
    for chunk in range(first // CHUNK, (end - 1) // CHUNK + 1):
        if not min(CHUNK, end - chunk * CHUNK) <= _read_chunk(connection, chunk).count(_END) <= CHUNK:
            raise sqlite3.DatabaseError("a sequence of words is damaged")


def keep_with_sequences(connection: sqlite3.Connection, docs: DocSet, wanted: Iterable[bytes]) -> DocSet:
    """Those of the documents whose sequences contain everything that is wanted."""
    for tokens in wanted:
        chunks = to_runs(_chunks_of(docs))
        rows = chain.from_iterable(_read_rows(connection, first, end) for first, end in chunks)
        docs = intersection(docs, from_docs(doc for first, words in rows for doc in _docs_with(tokens, first, words)))
    return docs


def read_sequences(connection: sqlite3.Connection, docs: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The sequences of single documents."""
    for chunk, some in groupby(sorted(docs), lambda doc: doc // CHUNK):
        sequences = _read_chunk(connection, chunk).split(_END)
        yield from ((doc, sequences[doc % CHUNK]) for doc in some)


def _chunks_of(docs: DocSet) -> Iterator[int]:
    """The chunks that have any of the documents, rising."""
    for block in sorted(docs):
        flags = docs.flags(block)
        first = (block << BLOCK_BITS) // CHUNK
        for number, start in enumerate(range(0, len(flags), _CHUNK_BYTES), first):
            if any(flags[start : start + _CHUNK_BYTES]):
                yield number


def _docs_with(tokens: bytes, first: int, words: bytes) -> Iterator[int]:
    """The documents of a row that contain the tokens; `first` is its first document."""
    doc, end = first, 0
    while (at := words.find(tokens, end)) >= 0:
        doc += words.count(_END, end, at)
        yield doc
        end = words.find(_END, at)


def _read_rows(connection: sqlite3.Connection, first: int, end: int) -> list[tuple[int, bytes]]:
    """The rows of consecutive chunks; raises sqlite3.DatabaseError if some are missing."""
    rows: list[tuple[int, bytes]] = connection.execute(
        "SELECT doc, words FROM sequences WHERE doc >= ? AND doc < ? ORDER BY doc", (first * CHUNK, end * CHUNK)
    ).fetchall()
    if len(rows) < end - first or not all(type(words) is bytes for _, words in rows):
        raise sqlite3.DatabaseError("a sequence of words is damaged")
    return rows


def _read_chunk(connection: sqlite3.Connection, chunk: int) -> bytes:
    return b"".join([words for _, words in _read_rows(connection, chunk, chunk + 1)])


def _write_chunk(connection: sqlite3.Connection, chunk: int, data: bytes) -> None:
    """Write a chunk as one row."""
    first, end = chunk * CHUNK, (chunk + 1) * CHUNK
    connection.execute("DELETE FROM sequences WHERE doc >= ? AND doc < ?", (first, end))
    connection.execute("INSERT INTO sequences VALUES (?, ?)", (first, data))
