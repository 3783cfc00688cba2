"""Tables to damage, their rows according to SQLite, and the rows read from their pages."""

import random
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.storage.salvage.leaf_rows import rows_past_damage
from memoranda.storage.salvage.rebuild import open_damaged, readable_rows
from memoranda.storage.schema import Column, Table
from memoranda.storage.sqlite.database import PAGE_SIZE

THINGS = Table(
    "things",
    "",
    (
        Column("id", "integer", "PRIMARY KEY"),
        Column("name", "text", "NOT NULL"),
        Column("weight", "real"),
        Column("size", "integer"),
        Column("sketch", "blob"),
        Column("note", "text"),
    ),
)


def rows_by_sqlite(path: Path, table: Table) -> dict[int, dict[str, Any]]:
    """The rows of a table according to SQLite, by rowid."""
    names = [column.name for column in table.columns]
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute(f"SELECT rowid, {', '.join(names)} FROM {table.name}")
        return {number: dict(zip(names, row, strict=True)) for number, *row in rows}


def rows_in_pages(path: Path, table: Table, *, columns_known: bool = True) -> list[dict[str, Any]]:
    """The rows of a table according to its pages, in no particular order."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        there = [row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")] if columns_known else []
        return list(rows_past_damage(connection, table, there))


def saved_rows(path: Path, table: Table) -> list[dict[str, Any]]:
    with closing(open_damaged(path)) as damaged:
        return list(readable_rows(damaged, table))


def root_of(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        return int(root)


def overwrite(path: Path, page: int, content: bytes) -> bytes:
    """Put something in the place of a page; what was there."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_SIZE)
        before = file.read(PAGE_SIZE)
        file.seek((page - 1) * PAGE_SIZE)
        file.write(content)
    return before


def noise(seed: int) -> bytes:
    return random.Random(seed).randbytes(PAGE_SIZE)


def make_things(path: Path, page: int, encoding: str, reserved: int, things: list[tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size={page}")
        connection.execute(f"PRAGMA encoding='{encoding}'")
        connection.execute("CREATE TABLE gone (a)")
        connection.execute("DROP TABLE gone")
        connection.execute("VACUUM")
    with path.open("r+b") as file:
        # Reserve bytes at the end of every page of an empty file.
        file.seek(20)
        file.write(bytes([reserved]))
        file.seek(105)
        file.write(struct.pack(">H", (page - reserved) % 65536))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(THINGS.create())
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO things VALUES (?, ?, ?, ?, ?, ?)", things)
        connection.execute("COMMIT")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
