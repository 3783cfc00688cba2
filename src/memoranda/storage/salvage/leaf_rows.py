"""Reads rows from the leaf pages of a SQLite file without the inner pages that lead to them.

A page does not say which table it belongs to; the number of columns and the types of its rows show it. A cell that does
not look exactly like a row of the table is skipped.
"""

import math
import sqlite3
import struct
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.storage.salvage.pages import TABLE_LEAF, Pages, cells, number_at, open_pages
from memoranda.storage.schema import Column, Table
from memoranda.storage.sqlite.database import Connection
from memoranda.support.lazy_dataclass import dataclass

_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL, _ZERO, _ONE, _FIRST_SIZED = 7, 8, 9, 12
_LARGEST_NUMBER = (1 << 63) - 1
_UNUSED = (10, 11)
_POINTER = 4

Row = dict[str, Any]


class PartialRow(Row):
    """A row of which a part is lost: texts end early or contain U+FFFD, and columns may be missing."""


@dataclass(frozen=True, slots=True)
class _StoredColumn:
    """Which values a column can contain. A rowid is stored before the row, and its own column is empty."""

    name: str
    kind: str
    is_required: bool
    is_rowid: bool

    @classmethod
    def of(cls, column: Column) -> "_StoredColumn":
        is_key = "PRIMARY KEY" in column.rules
        is_number = column.kind == "numbered" or (column.kind == "integer" and is_key)
        return cls(column.name, column.kind, is_key or "NOT NULL" in column.rules, is_number)

    def accepts(self, kind: int) -> bool:
        """Whether the column can contain a value of that serial type."""
        if kind == 0:
            return self.is_rowid or not self.is_required
        if self.kind == "text":
            return kind >= _FIRST_SIZED and kind % 2 == 1
        if self.kind in ("real", "integer"):
            return kind <= _ONE and not self.is_rowid
        return kind not in _UNUSED and not self.is_rowid


def rows_past_damage(
    connection: Connection, table: Table, existing: Sequence[str], reached: Container[int] = ()
) -> Iterator[Row]:
    """The rows of a table that SQLite does not reach in its file, each once.

    `existing` names the columns of the table in the order of the file; if it is empty, they are taken to be those that
    a new file has.
    `reached` are the rowids that the caller already has.
    """
    declared = {column.name: column for column in table.columns}
    columns = [declared.get(name, Column(name, "any")) for name in existing] or table.columns
    (_, _, file) = connection.execute("PRAGMA database_list").fetchone()
    with open_pages(Path(file)) as pages:
        others = set[int]().union(*(pages.tree(root) for root in _roots(connection, table)))
        reader = LeafRows(pages, columns, _min_columns(columns))
        found: set[int] = set()
        for number, row in reader.outside(others, reached):
            if number not in found:
                found.add(number)
                yield type(row)({name: value for name, value in row.items() if name in declared})


def _roots(connection: Connection, table: Table) -> list[int]:
    """The root pages of all other tables."""
    others = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name <> ?"
    try:
        return [root for (root,) in connection.execute(others, (table.name,)) if isinstance(root, int)]
    except sqlite3.DatabaseError:
        return []


class LeafRows:
    """Reads the rows of one table; `columns` are in the order of the file, and a row has at least `min_columns`.

    A row that was written before a column was added to the table ends before that column.
    """

    def __init__(self, pages: Pages, columns: Sequence[Column], min_columns: int) -> None:
        self._pages = pages
        self._columns = [_StoredColumn.of(column) for column in columns]
        self._min_columns = min_columns
        # A page belongs to at most one row: only damage refers to more pages, or to a row larger than the file.
        self._overflow_pages_left = 2 * len(pages)
        self._largest_row = len(pages) * pages.usable

    def outside(self, other_pages: Container[int], reached: Container[int]) -> Iterator[tuple[int, Row]]:
        """The rows, with their rowids, of all pages except those of other tables and free ones, without `reached`."""
        for number in self._pages.numbers():
            if number != 1 and number not in other_pages and number not in self._pages.free:
                page = self._pages.read(number)
                if page[:1] == bytes([TABLE_LEAF]):
                    yield from self._rows(page, reached)

    def _rows(self, page: bytes, reached: Container[int]) -> Iterator[tuple[int, Row]]:
        room = len(page)
        for offset in cells(page):
            length, after = number_at(page, offset)
            row_number, begin = number_at(page, after)
            if row_number in reached or not (0 < length <= self._largest_row and 0 < row_number <= _LARGEST_NUMBER):
                continue
            end = begin + _local_size(length, self._pages.usable)
            row = self._row(row_number, length, page[begin:end], page[end : end + _POINTER])
            if row is None:
                continue
            # Cells never overlap, so together they are not larger than the page.
            room -= end - offset
            if room < 0:
                return
            yield row_number, row

    def _row(self, row_number: int, length: int, content: bytes, pointer: bytes) -> Row | None:
        types = self._types(content, length)
        if types is None:
            return None
        if length > len(content):
            content += self._overflow(pointer, length - len(content))
        values: Row = {}
        is_whole = True
        offset = length - sum(map(_size, types))
        for column, kind in zip(self._columns, types, strict=False):
            piece = content[offset : offset + _size(kind)]
            offset += _size(kind)
            if column.is_rowid:
                values[column.name] = row_number
                continue
            value, is_whole_value = _read_value(column, kind, piece, self._pages.encoding)
            if column.is_required and (value is None if len(piece) == _size(kind) else column.kind == "text"):
                return None
            is_whole = is_whole and is_whole_value
            values[column.name] = value
        return values if is_whole else PartialRow(values)

    def _types(self, content: bytes, length: int) -> list[int] | None:
        """The serial types in the row's header, if this table can have them and they fill the row exactly."""
        end, offset = number_at(content, 0)
        if not offset < end <= len(content):
            return None
        types: list[int] = []
        while offset < end and len(types) < len(self._columns):
            kind, offset = number_at(content, offset)
            types.append(kind)
        if offset != end or len(types) < self._min_columns or end + sum(map(_size, types)) != length:
            return None
        fits = all(column.accepts(kind) for column, kind in zip(self._columns, types, strict=False))
        return types if fits else None

    def _overflow(self, pointer: bytes, missing: int) -> bytes:
        """The rest of a row that is too large for its page, or less if it is damaged."""
        pieces: list[bytes] = []
        while missing > 0 and len(pointer) == _POINTER and self._overflow_pages_left > 0:
            self._overflow_pages_left -= 1
            page = self._pages.read(int.from_bytes(pointer, "big"))
            pointer, piece = page[:_POINTER], page[_POINTER : _POINTER + missing]
            if not page.strip(b"\0"):
                # Zeros are not what was stored there.
                break
            pieces.append(piece)
            missing -= len(piece)
            if len(page) < self._pages.usable:
                # The file ends in this page.
                break
        return b"".join(pieces)


def _min_columns(columns: Sequence[Column]) -> int:
    """The minimum number of columns of old rows: required ones cannot have been added later; more than half of all."""
    required = (
        number
        for number, column in enumerate(columns, 1)
        if _StoredColumn.of(column).is_required and "DEFAULT" not in column.rules
    )
    return max(len(columns) // 2 + 1, max(required, default=0))


def _local_size(length: int, usable: int) -> int:
    """How many bytes of a row are in its own page."""
    maximum, minimum = usable - 35, (usable - 12) * 32 // 255 - 23
    if length <= maximum:
        return length
    local = minimum + (length - minimum) % (usable - _POINTER)
    return local if local <= maximum else minimum


def _size(kind: int) -> int:
    if kind >= _FIRST_SIZED:
        return (kind - _FIRST_SIZED) // 2
    return 8 if kind == _REAL else _INTEGERS.get(kind, 0)


def _read_value(column: _StoredColumn, kind: int, piece: bytes, encoding: str) -> tuple[Any, bool]:
    """A value, and whether it is all that was stored; of a text, as much as there is."""
    if len(piece) < _size(kind):
        return (piece.decode(encoding, "ignore") or None) if column.kind == "text" else None, False
    try:
        value = _value(kind, piece, encoding)
    except UnicodeDecodeError:
        # What identifies a row must be right; other text may be damaged.
        return (None if column.is_required else piece.decode(encoding, "replace")), False
    # SQLite stores a whole number in fewer bytes as an integer.
    return (float(value) if column.kind == "real" and isinstance(value, int) else value), True


def _value(kind: int, content: bytes, encoding: str) -> Any:
    if kind >= _FIRST_SIZED:
        return content.decode(encoding) if kind % 2 else content
    if kind == _REAL:
        (number,) = struct.unpack(">d", content)
        return None if math.isnan(number) else number
    if kind in _INTEGERS:
        return int.from_bytes(content, "big", signed=True)
    return {_ZERO: 0, _ONE: 1}.get(kind)
