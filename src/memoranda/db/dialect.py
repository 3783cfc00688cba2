"""What SQLite says in words of its own; another engine says the same in a file like this one."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.db.position import Position
from memoranda.db.sqlite import Connection

RowRefused = sqlite3.IntegrityError
"""What is raised for a row that breaks a rule of its table, such as one that refers to nothing."""


def add_row(connection: Connection, statement: str, values: Sequence[Any]) -> int | None:
    """Insert one row into a numbered table; its number, or None when a conflict kept it out."""
    added = connection.execute(statement, values)
    return added.lastrowid if added.rowcount == 1 else None


def add_row_that_fits(connection: Connection, table: str, row: Mapping[str, Any]) -> int:
    """Insert one row, unless it breaks a rule of the table; how many rows there are more."""
    filled = {name: value for name, value in row.items() if value is not None}
    return connection.execute(
        f"INSERT OR IGNORE INTO {table} ({', '.join(filled)}) VALUES ({', '.join('?' * len(filled))})",
        tuple(filled.values()),
    ).rowcount


def check_references_at_the_end(connection: Connection) -> None:
    """In this transaction, let rows come before those that they refer to."""
    connection.execute("PRAGMA defer_foreign_keys=1")


def holds_nul(column: str) -> str:
    """A condition: the text of a column has a NUL in it, which ends it for most of SQLite's functions."""
    return f"instr({column}, char(0)) > 0"


def beyond_ascii(column: str) -> str:
    """A condition: the text of a column has a character in it that is not ASCII."""
    return f"{column} GLOB '*[^' || char(1) || '-' || char(127) || ']*'"


def next_number(table: str, column: str, least: str) -> str:
    """A number behind all that a column has, and behind `least` if that is not null.

    SQLite's own counter for numbers that never come back writes a page of its own for every row.
    """
    return f"max((SELECT COALESCE(max({column}), 0) FROM {table}), COALESCE({least}, 0)) + 1"


def position_columns(column: str) -> str:
    """The two columns of a feed table from which `Position` is made; `column` holds the number of a row."""
    return f"0, {column}"


def after(column: str, position: Position) -> tuple[str, list[Any]]:
    """A condition and its values: the rows behind a position whose transaction has ended."""
    return f"{column} > ?", [position.row]


def up_to(column: str, position: Position) -> tuple[str, list[Any]]:
    """A condition and its values: the rows that `after` does not give any more."""
    return f"{column} <= ?", [position.row]


def feed_order(column: str, direction: str = "") -> str:
    """The order of positions."""
    return f"{column} {direction}".rstrip()
