"""The words of each segment in one row, in which a search that found nothing looks for longer words.

A row of postings has a word and its messages, so looking inside all words would read nearly the whole index.
"""

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator

_MIN_LETTERS, _MAX_LETTERS = 4, 40
# A shorter list is not worth compressing.
_SHORT = 1_000
_BREAK = b"\n"


def is_listed(token: str) -> bool:
    """Whether a token may be a word with others inside; numbers, hashes and keys are not."""
    # Words of some scripts contain vowel signs, which are not letters.
    return _MIN_LETTERS <= len(token) <= _MAX_LETTERS and (token.isalpha() or not token.isascii())


def write_words(connection: sqlite3.Connection, segment: int, words: Iterable[str]) -> None:
    # It begins with a line break, with which nothing that is compressed begins.
    data = "\n".join(["", *words, ""]).encode()
    packed = data if len(data) < _SHORT else zlib.compress(data, 1)
    connection.execute("INSERT OR REPLACE INTO words VALUES (?, ?)", (segment, packed))


def remove_words(connection: sqlite3.Connection, segment: int, removed: Collection[str]) -> None:
    """Remove words that no message of a segment has any more."""
    for data in _read(connection, (segment,)) if removed else ():
        write_words(connection, segment, [word for word in data.decode().split() if word not in removed])


def words_with(
    connection: sqlite3.Connection, segments: Collection[int], parts: Collection[str], limit: int
) -> list[str]:
    """The words of segments that contain one of some texts; of very many, some."""
    found: dict[bytes, None] = {}
    for data in _read(connection, segments):
        for part in parts:
            at = data.find(part.encode())
            while at >= 0 and len(found) < limit:
                end = data.find(_BREAK, at)
                found[data[data.rfind(_BREAK, 0, at) + 1 : end]] = None
                at = data.find(part.encode(), end)
    return [word.decode() for word in found]


def _read(connection: sqlite3.Connection, segments: Collection[int]) -> Iterator[bytes]:
    """The words of each segment, one after the other."""
    marks = ", ".join("?" * len(segments))
    for (data,) in connection.execute(f"SELECT list FROM words WHERE segment IN ({marks})", (*segments,)):
        try:
            yield data if data[:1] == _BREAK else zlib.decompress(data)
        except (TypeError, zlib.error) as error:
            raise sqlite3.DatabaseError("a list of words is damaged") from error
