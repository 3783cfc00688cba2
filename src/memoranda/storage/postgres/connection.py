"""A transaction of PostgreSQL with the calls that the store uses, and the translation of statements and values.

PostgreSQL's text cannot contain a NUL or half of a surrogate pair. Both are escaped on the way in and restored on the
way out, one to one, so that equal texts stay equal and different texts stay different.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.types.numeric import Int8Dumper

# A control character that text hardly ever contains, so that few texts must be changed.
_ESCAPE = "\x1a"
_UNSTORABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a(0|1|d[89a-f][0-9a-f]{2})")
_QUOTED_OR_MARK = re.compile(r"'(?:[^']|'')*'|\?")
_CAST = re.compile(r"\bAS INTEGER\)", re.IGNORECASE)

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
    """An open transaction that may write: for whom it acts (see `row_security`), and its number once it is known.

    `server_life` is the life of the server in which it has this number.
    """

    __slots__ = ("raw", "server_life", "setting", "transaction_id")

    def __init__(self, raw: RawConnection, setting: str = "") -> None:
        self.raw = raw
        self.setting = setting
        self.transaction_id = self.server_life = ""

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


@lru_cache(4096)
def translate(statement: str) -> str:
    """The statement with `$1`, `$2` … for `?`, and with whole numbers of 64 bits."""
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] != "?":
            return found[0]
        count += 1
        return f"${count}"

    return _CAST.sub("AS BIGINT)", _QUOTED_OR_MARK.sub(number, statement))


def stored_values(values: Iterable[Any]) -> list[Any]:
    """Values as PostgreSQL stores them."""
    return [
        escape(value)
        if value.__class__ is str and ("\0" in value or _ESCAPE in value)
        else int(value)
        if value.__class__ is bool
        else [escape(item) if isinstance(item, str) else item for item in value]
        if value.__class__ is list
        else value
        for value in values
    ]


def escaped_values(values: Iterable[Any]) -> list[Any]:
    """The same with half surrogate pairs escaped, for the few texts that have some."""
    return [escape(value) if isinstance(value, str) else stored_values([value])[0] for value in values]


def escape(text: str) -> str:
    return _UNSTORABLE.sub(_as_code, text)


def _as_code(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\0":
        return f"{_ESCAPE}0"
    return f"{_ESCAPE}1" if character == _ESCAPE else f"{_ESCAPE}{ord(character):04x}"


def restore(text: str) -> str:
    return _ESCAPED.sub(_as_character, text)


def _as_character(found: re.Match[str]) -> str:
    code = found[1]
    return "\0" if code == "0" else _ESCAPE if code == "1" else chr(int(code, 16))


def restored_row(row: Any) -> Any:
    """A row as it was stored."""
    for value in row:
        if value.__class__ is str and _ESCAPE in value:
            return tuple([restore(item) if item.__class__ is str and _ESCAPE in item else item for item in row])
    return row


def restored_rows(rows: Sequence[Any]) -> list[Any]:
    return [restored_row(row) for row in rows]
