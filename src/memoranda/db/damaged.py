"""Reading what can still be read of a damaged SQLite file, and putting a new one in its place."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from memoranda.db.schema import Table
from memoranda.db.sqlite import Connection

# A database, and the files that SQLite keeps beside it.
SIDE_FILES = ("", "-wal", "-shm")
# No row takes less room in the file, so there are at most so many.
_SMALLEST_ROW = 50

_Saved = TypeVar("_Saved")


def beside(path: Path) -> Path:
    """Where a damaged file is kept."""
    return path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")


def rebuild(path: Path, keep_as: Path, fill: Callable[[Connection, Path], _Saved]) -> _Saved:
    """Let `fill` make a new file from the damaged one, then put it in its place; the damaged one is kept."""
    fresh = path.with_name(f".{path.name}.salvaged")
    for ending in SIDE_FILES:
        Path(f"{fresh}{ending}").unlink(missing_ok=True)
    try:
        with closing(open_damaged(path)) as damaged:
            saved = fill(damaged, fresh)
    except BaseException:
        for ending in SIDE_FILES:
            Path(f"{fresh}{ending}").unlink(missing_ok=True)
        raise
    for ending in SIDE_FILES:
        if os.path.exists(f"{path}{ending}"):
            os.replace(f"{path}{ending}", f"{keep_as}{ending}")
    os.replace(fresh, path)
    return saved


def open_damaged(path: Path) -> Connection:
    """As others see it, with its log; or without the log when that is what is damaged."""
    for mode in ("ro", "ro&immutable=1"):
        connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None)
        try:
            # With this SQLite also reads a file that is shorter than it should be.
            connection.execute("PRAGMA writable_schema=1")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            break
        except sqlite3.DatabaseError:
            if mode != "ro":
                break
            connection.close()
    return connection


def readable_rows(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a table that can be read, as far as the file has its columns."""
    try:
        there = [row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")]
    except sqlite3.DatabaseError:
        return
    names = [column.name for column in table.columns if column.name in there]
    if names:
        select = f"SELECT {', '.join(names)} FROM {table.name} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        for row in _rows(connection, select, 0, _last(connection, table.name)):
            yield dict(zip(names, row, strict=True))


def _last(connection: Connection, table: str) -> int:
    """The number of a table's last row, from the table, else from SQLite's notes, else by the size of the file."""
    for question in (f"SELECT max(rowid) FROM {table}", f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'"):
        try:
            row = connection.execute(question).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            return int(row[0] or 0)
    (pages,), (size,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    return int(pages * size // _SMALLEST_ROW)


def _rows(connection: Connection, select: str, low: int, high: int) -> Iterator[tuple[Any, ...]]:
    """The rows between two numbers; where reading fails, the halves are tried, down to the row that is lost."""
    try:
        found = connection.execute(select, (low, high)).fetchall()
    except sqlite3.DatabaseError:
        if low < high:
            middle = (low + high) // 2
            yield from _rows(connection, select, low, middle)
            yield from _rows(connection, select, middle + 1, high)
        return
    yield from found
