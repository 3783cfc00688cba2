"""A database made from a log alone, for a file that is lost.

SQLite reads the pages that are in a log from there, and only the others from the file. So any file will do in the place
of the lost one, as far as the log goes. A new, empty store does best: the pages that say which tables there are, and
where each begins, were written once and are seldom in the log, and they are the same in both if the same program made
both. That is not taken on trust: where a table or an index of the empty store begins, the log must have a page of that
kind, with rows of as many columns. Otherwise the log's pages are read by themselves.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from memoranda.db.salvage.pages import FILE_HEADER, TABLE_INNER, TABLE_LEAF, cells, number_at
from memoranda.db.salvage.wal_frames import read_frames

_Pages = dict[int, bytes]


def stand_in(log: Path, scratch: Path, make: Callable[[Path], object]) -> None:
    """Put a file at `scratch` in which SQLite shows what `log` holds once it lies beside it; `make` makes a store."""
    make(scratch)
    roots = _roots(scratch)
    with log.open("rb") as file:
        frames = read_frames(file)
        pages = {number: frames.read(number) for number in (1, *roots) if number in frames.places}
    size, content = frames.size, scratch.read_bytes()
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


def _fits(pages: _Pages, empty: _Pages, roots: dict[int, int]) -> bool:
    """Whether the pages of a log can be those of a store that was made like the empty one."""
    first = pages.get(1, empty[1])
    return first[FILE_HEADER:] == empty[1][FILE_HEADER:] and all(
        _is_table(pages[number]) == _is_table(empty[number])
        and (not _is_table(pages[number]) or all(width == columns for width in _widths(pages[number])))
        for number, columns in roots.items()
        if number in pages
    )


def _is_table(page: bytes) -> bool:
    return page[:1] in (bytes([TABLE_LEAF]), bytes([TABLE_INNER]))


def _widths(page: bytes) -> Iterator[int]:
    """How many columns each row of a page has; nothing for a page without rows."""
    for place in cells(page) if page[:1] == bytes([TABLE_LEAF]) else ():
        _, row_number = number_at(page, place)
        _, header = number_at(page, row_number)
        length, after = number_at(page, header)
        width = 0
        while after < min(header + length, len(page)):
            _, after = number_at(page, after)
            width += 1
        yield width
