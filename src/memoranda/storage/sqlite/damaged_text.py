"""Reads rows although damage has made some of their text invalid, which Python's SQLite module refuses to return."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from memoranda.storage.connection import Connection

_NOT_UTF8 = "Could not decode to UTF-8"


def readable_rows(connection: Connection, statement: str, values: Sequence[Any] = ()) -> Generator[Any, None, None]:
    """The rows of a statement that always gives the same rows in the same order.

    Bytes that are not text come as U+FFFD; otherwise one damaged row would make all others unreadable.
    """
    count = 0
    try:
        for row in connection.execute(statement, values):
            yield row
            count += 1
    except sqlite3.OperationalError as error:
        if _NOT_UTF8 not in str(error) or not isinstance(connection, sqlite3.Connection):
            raise
    else:
        return
    factory = connection.text_factory
    connection.text_factory = _decode
    try:
        yield from islice(connection.execute(statement, values), count, None)
    finally:
        connection.text_factory = factory


def first_readable_row(connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
    """The first of these rows; None if there is none."""
    with closing(readable_rows(connection, statement, values)) as rows:
        return next(rows, None)


def _decode(stored: bytes) -> str:
    return stored.decode(errors="replace")
