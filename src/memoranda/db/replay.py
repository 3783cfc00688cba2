"""A database made from a log alone, for a file that is lost.

SQLite reads the pages that are in a log from there, and only the others from the file. So any file will do in the place
of the lost one, as far as the log goes. A new, empty store does best: the pages that say which tables there are, and
where each begins, were written once and are seldom in the log, and they are the same in both if the same program made
both. That is not taken on trust: where a table or an index of the empty store begins, the log must have a page of that
kind, with rows of as many columns. Otherwise the log's pages are read by themselves.
"""

import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

_LOG_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">6I")
# In the first page the database's own header comes before the content.
_DATABASE_HEADER = 100
_TABLE_LEAF, _TABLE_INNER = 13, 5
_LEAF_HEADER = 8
_PAGE_SIZES = {1 << power for power in range(9, 17)}

_Pages = dict[int, bytes]


def stand_in(log: Path, scratch: Path, make: Callable[[Path], object]) -> None:
    """Put a file at `scratch` in which SQLite shows what `log` holds once it lies beside it; `make` makes a store."""
    make(scratch)
    roots = _roots(scratch)
    size, pages = _pages(log, {1, *roots})
    content = scratch.read_bytes()
    empty = {number: content[(number - 1) * size : number * size] for number in (1, *roots)}
    if not _fits(pages, empty, roots):
        # A file with one page that says nothing: SQLite deletes a log beside a file with none.
        scratch.write_bytes(bytes(size))


def _roots(path: Path) -> dict[int, int]:
    """The page where each table and index of a store begins, and how many columns a table's rows have."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return dict(
            connection.execute(
                "SELECT rootpage, (SELECT count(*) FROM pragma_table_info(its.name)) FROM sqlite_master its"
                " WHERE rootpage > 0"
            )
        )


def _pages(log: Path, wanted: set[int]) -> tuple[int, _Pages]:
    """The size of a page in a log, 0 if that is damaged; and the wanted pages that are in it, as they were last."""
    found: _Pages = {}
    with open(log, "rb") as file:
        header = file.read(_LOG_HEADER.size)
        if len(header) < _LOG_HEADER.size:
            return 0, found
        (_, _, size, _, *salts, _, _) = _LOG_HEADER.unpack(header)
        if size not in _PAGE_SIZES:
            return 0, found
        while len(frame := file.read(_FRAME_HEADER.size)) == _FRAME_HEADER.size:
            (number, _, *its_salts, _, _) = _FRAME_HEADER.unpack(frame)
            # What an earlier use of the log left behind the end of this one does not count.
            if its_salts != salts:
                break
            if number in wanted:
                found[number] = file.read(size)
            else:
                file.seek(size, os.SEEK_CUR)
    return size, {number: page for number, page in found.items() if len(page) == size}


def _fits(pages: _Pages, empty: _Pages, roots: dict[int, int]) -> bool:
    """Whether the pages of a log can be those of a store that was made like the empty one."""
    first = pages.get(1, empty[1])
    return first[_DATABASE_HEADER:] == empty[1][_DATABASE_HEADER:] and all(
        _is_table(pages[number]) == _is_table(empty[number])
        and (not _is_table(pages[number]) or all(width == columns for width in _widths(pages[number])))
        for number, columns in roots.items()
        if number in pages
    )


def _is_table(page: bytes) -> bool:
    return page[:1] in (bytes([_TABLE_LEAF]), bytes([_TABLE_INNER]))


def _widths(page: bytes) -> Iterator[int]:
    """How many columns each row of a page has; nothing for a page without rows."""
    if page[0] != _TABLE_LEAF:
        return
    (rows,) = struct.unpack_from(">H", page, 3)
    for (begin,) in struct.iter_unpack(">H", page[_LEAF_HEADER : _LEAF_HEADER + 2 * rows]):
        _, row_number = _number(page, begin)
        _, header = _number(page, row_number)
        length, after = _number(page, header)
        width = 0
        while after < min(header + length, len(page)):
            _, after = _number(page, after)
            width += 1
        yield width


def _number(page: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where the next thing begins."""
    value = 0
    for count, byte in enumerate(page[place : place + 9], 1):
        if count == 9:
            return (value << 8) | byte, place + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, place + count
    return value, len(page)
