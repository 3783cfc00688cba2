"""The state and the log of imports on a server: copying them there and back, and checking them.

Rows that the target has already stay, so a copy that was interrupted is repeated. On a server, the rows of files belong
to this machine.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.importers.state.schema import (
    FILE_NAME,
    IMPORTS,
    PARTS,
    PROPOSALS,
    SEEN_SESSIONS,
    SERVER_ITEMS,
    imports_database,
    item_names,
    node_name,
)
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.orphaned_wal import database_exists
from memoranda.storage.schema import Table
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.health_issues import HealthIssue

_STORE_ID = "store_id"
_FILE, _SERVER = item_names(on_server=False), item_names(on_server=True)
_REST = (("size", "changed", "sessions"), ("line", "state", "seal"))
_LONGEST_IMPORT = 86_400.0


class _Copied(NamedTuple):
    """A table with its columns in the file, and the same columns on a server."""

    file_table: str
    file_columns: tuple[str, ...]
    server_table: str
    server_columns: tuple[str, ...]


_ITEMS = _Copied(
    _FILE.table,
    (*_FILE.key, *_REST[0], _FILE.offset, *_REST[1]),
    _SERVER.table,
    (*_FILE.key, *_REST[0], _SERVER.offset, *_REST[1]),
)


def _same(table: Table) -> _Copied:
    columns = tuple(column.name for column in table.columns)
    return _Copied(table.name, columns, table.name, columns)


_SEEN, _IMPORTS, _PARTS, _PROPOSALS = _same(SEEN_SESSIONS), _same(IMPORTS), _same(PARTS), _same(PROPOSALS)


_TABLES = (_ITEMS, _SEEN, _IMPORTS, _PARTS, _PROPOSALS)


def copy_imports_to_server(root: Path, url: str) -> dict[str, int]:
    """Copy the file of a home, and verify the copy; returns how many rows each table of the file has."""
    if not database_exists(root / FILE_NAME):
        return {}
    with closing(imports_database(root)) as file, closing(imports_database(root, url)) as server:
        source, target = file.open(), server.open().acting_for(None, everyone=True)
        if not _is_of_same_store(source, target):
            return {}
        rows = _copy_to_server(source, target)
        for copied in _TABLES:
            _verify(target, copied, rows[copied])
    return {copied.server_table: len(rows[copied]) for copied in _TABLES}


def copy_imports_to_files(url: str, root: Path) -> dict[str, int]:
    """Copy what a server has to the file of a home; of two nodes with a file of the same path, this one counts."""
    with closing(imports_database(root, url)) as server:
        source = server.open().acting_for(None, everyone=True)
        with source.reading() as connection:
            rows = {copied: _read_server(connection, copied) for copied in _TABLES}
            nodes = [row[0] for row in connection.execute(f"SELECT node FROM {_SERVER.table} ORDER BY id").fetchall()]
            store_id = read_meta(connection, _STORE_ID)
    if not any(rows.values()):
        return {}
    here = node_name()
    by_node = sorted(zip(nodes, rows[_ITEMS], strict=True), key=lambda item: item[0] != here)
    rows[_ITEMS] = [row for _, row in by_node]
    with closing(imports_database(root)) as file, file.open().writing() as connection:
        for copied in _TABLES:
            _insert(connection, copied.file_table, copied.file_columns, rows[copied])
        write_meta(connection, _STORE_ID, store_id or "")
    return {copied.server_table: len(rows[copied]) for copied in _TABLES}


def _copy_to_server(source: Engine, target: Engine) -> dict[_Copied, list[Any]]:
    with source.reading() as connection:
        rows = {
            copied: connection.execute(
                f"SELECT {', '.join(copied.file_columns)} FROM {copied.file_table} ORDER BY rowid"
            ).fetchall()
            for copied in _TABLES
        }
    users = {row[_IMPORTS.file_columns.index("id")]: row[1] for row in rows[_IMPORTS]}
    known = sorted({row[1] for row in (*rows[_ITEMS], *rows[_IMPORTS])}, key=len, reverse=True)
    node = node_name()

    def write(connection: Connection) -> None:
        _insert(connection, _ITEMS.server_table, (*_ITEMS.server_columns, "node"), [(*r, node) for r in rows[_ITEMS]])
        seen = [(*row, _user_of_family(row[1], known)) for row in rows[_SEEN]]
        _insert(connection, _SEEN.server_table, (*_SEEN.server_columns, "user_id"), seen)
        _insert(connection, _IMPORTS.server_table, _IMPORTS.server_columns, rows[_IMPORTS])
        for copied in (_PARTS, _PROPOSALS):
            added = [(*row, users.get(row[0], "")) for row in rows[copied]]
            _insert(connection, copied.server_table, (*copied.server_columns, "user_id"), added)

    target.write(write)
    return rows


def _user_of_family(family: str, users: Sequence[str]) -> str:
    """The user in the key of a family: source, user and first message, on lines of their own."""
    _, _, rest = family.partition("\n")
    return next((user for user in users if rest.startswith(f"{user}\n")), rest.partition("\n")[0])


def _is_of_same_store(file: Engine, server: Engine) -> bool:
    """Whether a file belongs to the store that the server has; the state of another, deleted store is not copied."""
    with file.reading() as here, server.reading() as there:
        return read_meta(here, _STORE_ID) == read_meta(there, _STORE_ID)


def _verify(engine: Engine, copied: _Copied, rows: Sequence[Any]) -> None:
    with engine.reading() as connection:
        found = {tuple(row) for row in _read_server(connection, copied)}
    if not found.issuperset(tuple(row) for row in rows):
        raise StorageError(
            f"The table {copied.server_table} differs in {engine.location}. Stop every program that imports, empty "
            "the target, and start again."
        )


def _read_server(connection: Connection, copied: _Copied) -> list[Any]:
    return list(
        connection.execute(
            f"SELECT {', '.join(copied.server_columns)} FROM {copied.server_table} ORDER BY id"
        ).fetchall()
    )


def _insert(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
    connection.executemany(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES (?{', ?' * (len(columns) - 1)}) ON CONFLICT DO NOTHING",
        [tuple(row) for row in rows],
    )


def check_server_imports(home: Path, setting: Path, url: str) -> Iterator[HealthIssue]:
    """Report damaged rows and imports without an end; `setting` is the file that names the server."""
    with (
        closing(imports_database(home, url)) as database,
        database.open().acting_for(None, everyone=True).reading() as connection,
    ):
        (lost,) = connection.execute(
            "SELECT count(*) FROM import_parts p WHERE NOT EXISTS (SELECT 1 FROM imports i WHERE i.id = p.import_id)"
        ).fetchone()
        (killed,) = connection.execute(
            "SELECT count(*) FROM imports WHERE ended IS NULL AND began < ?", (time.time() - _LONGEST_IMPORT,)
        ).fetchone()
        damaged = [number for number, sessions in _lists(connection) if not _is_list(sessions)]
    if lost:
        yield HealthIssue(
            "warning",
            setting,
            f"names a server that has {lost:,} parts of imports without their import, which cannot be undone",
            "restore the table imports from a backup of the server, or delete those sessions one by one",
        )
    if killed:
        yield HealthIssue(
            "note",
            setting,
            f"names a server that has {killed:,} imports without an end: they were killed",
            "nothing to do; the next import of the same user completes their log",
        )
    if damaged:
        yield HealthIssue(
            "warning",
            setting,
            f"names a server that has {len(damaged):,} imported files with an unreadable list of sessions",
            "delete these rows; the files are read again, and nothing is added twice",
            lambda: _delete(home, url, damaged),
            harmless=True,
        )


def _lists(connection: Connection) -> list[tuple[int, str]]:
    rows = connection.execute(f"SELECT id, sessions FROM {SERVER_ITEMS}").fetchall()
    return [(number, sessions) for number, sessions in rows]


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _delete(home: Path, url: str, numbers: list[int]) -> str:
    with (
        closing(imports_database(home, url)) as database,
        database.open().acting_for(None, everyone=True).writing() as connection,
    ):
        connection.executemany(f"DELETE FROM {SERVER_ITEMS} WHERE id = ?", [(number,) for number in numbers])
    return f"{len(numbers):,} files are read again by the next import"
