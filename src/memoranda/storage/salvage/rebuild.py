"""Reads the rows of a damaged SQLite file, and replaces it with a new file with those rows.

If the main file was lost, its write-ahead log becomes readable through another main file: SQLite reads the pages that
are in the log from the log, and only the others from the file. A new, empty store is best: the pages that define the
tables and their roots are written once and are rarely in the log, and they are the same if the same program created
both files. `make_main_file` checks that: for each root of the empty store that is in the log, the log must have a page
of the same kind, with rows of the same number of columns. Otherwise the pages of the log are read one by one.
"""

import glob
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from operator import ne
from pathlib import Path
from typing import Any, TypeVar

from memoranda.errors import StorageError
from memoranda.storage.orphaned_wal import WAL_SUFFIX, main_file_missing, wal_path
from memoranda.storage.salvage.leaf_rows import rows_past_damage
from memoranda.storage.salvage.pages import FILE_HEADER, TABLE_INNER, TABLE_LEAF, cells, number_at, read_frames
from memoranda.storage.schema import Table
from memoranda.storage.sqlite.database import Connection
from memoranda.storage.sqlite.exclusive_file import exclusive_access
from memoranda.support.durable_files import PRIVATE_FILE, sync, sync_directory

_Pages = dict[int, bytes]

# The suffixes of a database file and of SQLite's other files for it.
SIDE_FILES = ("", WAL_SUFFIX, "-shm", "-journal")
# Those of the other files that contain data.
_DATA_SUFFIXES = (WAL_SUFFIX, "-journal")
_LONE_LOG = ".wal"
_SUFFIXES = (*SIDE_FILES, _LONE_LOG)
_CHUNK = 1 << 20
# No row takes fewer bytes; this limits how many rows a file can have.
_MIN_ROW_BYTES = 50
# After this many failed reads, the rest is read from the pages.
_MAX_FAILURES = 10_000

_Saved = TypeVar("_Saved")


def damaged_copy_path(path: Path) -> Path:
    """The path under which a damaged file is kept."""
    return path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")


def list_kept_files(keep_as: Path) -> str:
    """The names of the kept files, for a message."""
    return " and ".join(sorted(file.name for file in keep_as.parent.glob(f"{glob.escape(keep_as.name)}*")))


class DamagedDatabase:
    """A damaged file that is open for reading."""

    def __init__(self, connection: Connection, known_columns: Mapping[str, str]) -> None:
        self._connection = connection
        self._known_columns = known_columns
        self.past_damage: Counter[str] = Counter()
        """How many rows of each table were read from pages that SQLite itself does not reach."""

    def rows(self, table: Table) -> Iterator[dict[str, Any]]:
        """The rows of a table that can still be read, as far as the file has its columns."""
        return readable_rows(self._connection, table, self.past_damage, self._known_columns.get(table.name, "").split())


def rebuild(
    path: Path,
    keep_as: Path,
    make: Callable[[Path], object],
    fill: Callable[[DamagedDatabase, Path], _Saved],
    known_columns: Mapping[str, str] | None = None,
) -> _Saved:
    """Save the readable rows of a damaged file: the one function of this folder that other folders need.

    `fill` copies rows of the damaged file into a new one, which then replaces it; the damaged file is kept as
    `keep_as`. `make` creates an empty file. `known_columns` are the names of the columns of tables, in the order of the
    file, for a file that has lost its own list. Raises LockTimeoutError, and changes nothing, while a process has the
    damaged file open.
    """
    target = Path(os.path.realpath(path))
    fresh = target.with_name(f".{target.name}.salvaged")
    scratch = target.with_name(f".{target.name}.replayed")
    with exclusive_access(target) as file:
        if any(os.path.exists(f"{keep_as}{ending}") for ending in _SUFFIXES):
            raise StorageError(f"{keep_as} already exists and is not overwritten. Nothing was changed.")
        try:
            # An earlier repair may have been killed.
            _remove(fresh, scratch)
            if main_file_missing(target):
                readable = _keep_log(target, keep_as, scratch, make)
            else:
                readable = _keep(target, file, keep_as)
            with closing(open_damaged(readable)) as damaged:
                saved = fill(DamagedDatabase(damaged, known_columns or {}), fresh)
            sync_directory(keep_as.parent)
        except BaseException:
            _remove(fresh, scratch, keep_as)
            raise
        _replace(target, fresh)
    _remove(scratch)
    _remove_reader_files(keep_as)
    return saved


def _keep(target: Path, file: int | None, keep_as: Path) -> Path:
    """Copy a database and its log; return the path of the copy, which reads like the damaged database."""
    _copy(target if file is None else file, keep_as)
    for ending in _DATA_SUFFIXES:
        if os.path.exists(f"{target}{ending}"):
            _copy(Path(f"{target}{ending}"), Path(f"{keep_as}{ending}"))
    return keep_as


def _keep_log(target: Path, keep_as: Path, scratch: Path, make: Callable[[Path], object]) -> Path:
    """Copy a log without its main file, under another suffix: SQLite would delete the log of a missing file."""
    _copy(wal_path(target), log := Path(f"{keep_as}{_LONE_LOG}"))
    make_main_file(log, scratch, make)
    _copy(log, Path(f"{scratch}{WAL_SUFFIX}"))
    return scratch


def _copy(source: Path | int, target: Path) -> None:
    """Copy a file; a descriptor stays open, because closing it would drop the lock."""
    made = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    with open(source, "rb", closefd=not isinstance(source, int)) as content, open(made, "wb") as copy:
        shutil.copyfileobj(content, copy, _CHUNK)
        copy.flush()
        sync(made)


def _replace(target: Path, fresh: Path) -> None:
    # The old log is removed first: SQLite would use it as the log of the new file.
    for ending in SIDE_FILES[1:]:
        Path(f"{target}{ending}").unlink(missing_ok=True)
    os.replace(fresh, target)
    sync_directory(target.parent)


def _remove_reader_files(path: Path) -> None:
    """Remove the files that SQLite created for reading."""
    Path(f"{path}-shm").unlink(missing_ok=True)
    if (log := Path(f"{path}{WAL_SUFFIX}")).exists() and not log.stat().st_size:
        log.unlink()


def _remove(*paths: Path) -> None:
    for path in paths:
        for ending in _SUFFIXES:
            Path(f"{path}{ending}").unlink(missing_ok=True)


def is_database(path: Path) -> bool:
    """Whether SQLite recognises a file as a database, however damaged; an empty file is one, too.

    SQLite reads it, because opening and closing the file here would release the locks that this process may have on it:
    another process would then delete the log that this one writes to. Immutable mode creates no file and takes no lock.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    return True


def open_damaged(path: Path) -> Connection:
    """Open a damaged file with its log, or without the log if that is damaged."""
    for mode in ("ro", "ro&immutable=1"):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        try:
            # This lets SQLite read a file that is shorter than it should be.
            connection.execute("PRAGMA writable_schema=1")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            break
        except sqlite3.DatabaseError:
            if mode != "ro":
                break
            connection.close()
    return connection


def readable_rows(
    connection: Connection,
    table: Table,
    past_damage: Counter[str] | None = None,
    known_columns: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """The rows of a table that can be read, as far as the file has its columns.

    First the rows that SQLite reaches, then those after damaged pages, which `past_damage` counts. `known_columns` are
    those of the table if the file itself no longer says so.
    """
    try:
        existing = [row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")]
    except sqlite3.DatabaseError:
        existing = []
    declared = [column.name for column in table.columns]
    if len(existing) == len(declared) and sum(map(ne, existing, declared)) == 1:
        # A changed bit has renamed a column, without which no row can be stored again.
        existing = []
    names = [name for name in declared if name in existing]
    reached: set[int] = set()
    if names:
        select = f"SELECT rowid, {', '.join(names)} FROM {table.name} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        for number, *row in _rows(connection, select, 0, _last_rowid(connection, table.name)):
            reached.add(number)
            yield dict(zip(names, row, strict=True))
    if not names or not _has_row_count(connection, table.name, len(reached)):
        for found in rows_past_damage(connection, table, existing or known_columns, reached):
            if past_damage is not None:
                past_damage[table.name] += 1
            yield found


def _has_row_count(connection: Connection, table: str, rows: int) -> bool:
    """Whether SQLite reaches all pages of a table and counts this many rows."""
    try:
        return bool(connection.execute(f"SELECT count(*) FROM {table} NOT INDEXED").fetchone()[0] == rows)
    except sqlite3.DatabaseError:
        return False


def _last_rowid(connection: Connection, table: str) -> int:
    """The last rowid of a table: from the table, from `sqlite_sequence`, or estimated from the file size."""
    for question in (f"SELECT max(rowid) FROM {table}", f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'"):
        try:
            row = connection.execute(question).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            return int(row[0] or 0)
    (pages,), (size,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    return int(pages * size // _MIN_ROW_BYTES)


def _rows(connection: Connection, select: str, low: int, high: int) -> Iterator[tuple[Any, ...]]:
    """The rows between two rowids; if a read fails, each half is tried, down to the row that is lost."""
    pending = [(low, high)]
    failures = 0
    while pending:
        low, high = pending.pop()
        try:
            found = connection.execute(select, (low, high)).fetchall()
        except sqlite3.DatabaseError:
            failures += 1
            if low < high and failures < _MAX_FAILURES:
                middle = (low + high) // 2
                pending += [(middle + 1, high), (low, middle)]
        else:
            yield from found


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
