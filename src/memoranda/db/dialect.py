"""What SQLite says in words of its own; another engine says the same in a file like this one."""

from collections.abc import Sequence
from typing import Any

from memoranda.db.sqlite import Connection


def add_row(connection: Connection, statement: str, values: Sequence[Any]) -> int | None:
    """Insert one row into a numbered table; its number, or None when a conflict kept it out."""
    added = connection.execute(statement, values)
    return added.lastrowid if added.rowcount == 1 else None


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
