"""The protocol of a transaction, for code that knows tables but no engine."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """An open transaction; statements use `?` as placeholder with every engine."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows: ...
    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any: ...
