"""Makes a write-ahead log readable after its main file was lost, by creating another main file.

SQLite reads the pages that are in the log from the log, and only the others from the file. So any file can replace the
lost one. A new, empty store is best: the pages that define the tables and their roots are written once and are rarely
in the log, and they are the same if the same program created both files. `make_main_file` checks that: for each root of
the empty store that is in the log, the log must have a page of the same kind, with rows of the same number of columns.
Otherwise the pages of the log are read one by one.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from memoranda.storage.salvage.pages import FILE_HEADER, TABLE_INNER, TABLE_LEAF, cells, number_at
from memoranda.storage.salvage.wal_frames import read_frames

_Pages = dict[int, bytes]


def make_main_file(log: Path, scratch: Path, make: Callable[[Path], object]) -> None:
    """Create a file at `scratch` that can replace the main file of `log`; `make` creates an empty store."""
    make(scratch)
    roots = _roots(scratch)
    with log.open("rb") as file:
        frames = read_frames(file)
        pages = {number: frames.read(number) for number in (1, *roots) if number in frames.offsets}
    size, content = frames.size, scratch.read_bytes()
    empty = {number: content[(number - 1) * size : number * size] for number in (1, *roots)}
    if not _fits(pages, empty, roots):
        # A file with one empty page: SQLite deletes the log of a file without pages.
        scratch.write_bytes(bytes(size))


def _roots(path: Path) -> dict[int, int]:
    """The root page of each table and index of a store, with the number of columns of a table."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return dict(
            connection.execute(
                "SELECT rootpage, (SELECT count(*) FROM pragma_table_info(item.name)) FROM sqlite_master item"
                " WHERE rootpage > 0"
            )
        )


def _fits(pages: _Pages, empty: _Pages, roots: dict[int, int]) -> bool:
    """Whether the pages of a log fit a store with the roots of the empty one."""
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
    """The number of columns of each row of a leaf page."""
    for offset in cells(page) if page[:1] == bytes([TABLE_LEAF]) else ():
        _, row_number = number_at(page, offset)
        _, header = number_at(page, row_number)
        length, after = number_at(page, header)
        width = 0
        while after < min(header + length, len(page)):
            _, after = number_at(page, after)
            width += 1
        yield width
