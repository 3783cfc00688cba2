"""A transaction of PostgreSQL with the calls that the store uses."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.types.numeric import Int8Dumper

from memoranda.storage.postgres.values import escaped_values, restored_row, restored_rows, stored_values, translate

RawConnection = psycopg.Connection[Any]


class _SumLoader(Loader):
    """Reads the sums of whole numbers, which have a decimal type of their own, as SQLite returns them."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _Adaptation:
    """Sends every whole number as 64 bits: with the smallest type that fits, each statement would be prepared often."""

    connection: RawConnection | None = None

    def __init__(self) -> None:
        self.adapters = AdaptersMap(psycopg.adapters)
        self.adapters.register_dumper(int, Int8Dumper)
        self.adapters.register_loader("numeric", _SumLoader)


ADAPTATION = _Adaptation()


class PostgresRows:
    """The result of a statement, read completely."""

    __slots__ = ("_cursor", "rowcount")

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor
        self.rowcount = cursor.rowcount

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        return None if row is None else restored_row(row)

    def fetchall(self) -> list[Any]:
        return restored_rows(self._cursor.fetchall())

    def __iter__(self) -> Iterator[Any]:
        return map(restored_row, self._cursor)


class PostgresConnection:
    """An open transaction that may write: for whom it acts (see `row_security`), and its number once it is known."""

    __slots__ = ("raw", "setting", "transaction_id")

    def __init__(self, raw: RawConnection, setting: str = "") -> None:
        self.raw = raw
        self.setting = setting
        self.transaction_id = ""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> PostgresRows:
        return PostgresRows(execute(self.raw, statement, values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        with self.raw.cursor() as cursor:
            # The first rows are sent before the last are encoded, so all are escaped at once.
            cursor.executemany(translate(statement), [escaped_values(row) for row in rows])


def execute(raw: RawConnection, statement: str, values: Sequence[Any]) -> psycopg.Cursor[Any]:
    """Execute a statement with `?` as placeholder."""
    translated = translate(statement)
    try:
        return raw.execute(translated, stored_values(values) if values else None)
    except UnicodeEncodeError:
        # Nothing was sent: psycopg encodes all values first.
        return raw.execute(translated, escaped_values(values))
