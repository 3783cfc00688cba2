"""Engines that delay their commits, so that transactions overlap if the engine allows it."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from memoranda.errors import StorageError
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine

MAX_DELAY = 0.012
_MAX_PAUSE = 60.0
_Answer = TypeVar("_Answer")


class SlowCommits:
    """An engine that keeps write transactions open for a random short time before they commit."""

    def __init__(self, engine: Engine, delays: random.Random) -> None:
        self._engine = engine
        self._random = delays

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def acting_for(self, user: str | None, *, everyone: bool = False) -> "SlowCommits":
        return SlowCommits(self._engine.acting_for(user, everyone=everyone), self._random)

    def write(self, work: Callable[[Connection], _Answer]) -> _Answer:
        with self.writing() as connection:
            return work(connection)

    def write_statement(self, statement: str, values: Sequence[Any]) -> list[Any]:
        try:
            with self.writing() as connection:
                return connection.execute(statement, values).fetchall()
        except StorageError as error:
            if isinstance(error.__cause__, self._engine.dialect.row_refused):
                raise error.__cause__ from None
            raise

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._engine.writing() as connection:
            yield connection
            time.sleep(self._random.uniform(0, MAX_DELAY))


class PausedCommits(SlowCommits):
    """An engine that waits for an event before it commits."""

    def __init__(self, engine: Engine, paused: threading.Event, resume: threading.Event) -> None:
        super().__init__(engine, random.Random())
        self._paused = paused
        self._resume = resume

    def acting_for(self, user: str | None, *, everyone: bool = False) -> "PausedCommits":
        return PausedCommits(self._engine.acting_for(user, everyone=everyone), self._paused, self._resume)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._engine.writing() as connection:
            yield connection
            self._paused.set()
            self._resume.wait(_MAX_PAUSE)
