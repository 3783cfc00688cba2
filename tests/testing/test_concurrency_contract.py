"""The SQLite store keeps the concurrency contract, and a store whose ids do not follow commits breaks it."""

import itertools
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.record.record import open_record
from memoranda.memory.record.schema import SCHEMA
from memoranda.storage.engine import Engine
from memoranda.storage.sqlite.engine import SqliteDialect, SqliteEngine
from memoranda.support.home import APPLICATION_ID
from tests.contracts.concurrency import ConcurrencyContract
from tests.memory.record.conftest import quick_directory

pytestmark = pytest.mark.slow


class TestSqlite(ConcurrencyContract):
    @pytest.fixture
    def connect(self) -> Iterator[Callable[[], Engine]]:
        with quick_directory() as directory:
            opened: list[Engine] = []

            def connect() -> Engine:
                # A loaded machine may keep a writer waiting for long.
                opened.append(open_record(directory / "state.db", wait=60.0))
                return opened[-1]

            yield connect
            for engine in opened:
                engine.close()


class _SequenceDialect(SqliteDialect):
    """Takes the id of a message from a sequence that knows nothing of transactions."""

    def next_id(self, table: str, minimum: str) -> str:
        return "reserved_id()"


class _SequenceEngine(SqliteEngine):
    """Reserves ids before a transaction begins, as a sequence does, so that commits overtake each other."""

    dialect = _SequenceDialect()
    sequence = itertools.count(1)
    local = threading.local()

    def _connect(self, mode: str = "rw") -> sqlite3.Connection:
        connection = super()._connect(mode)
        connection.create_function("reserved_id", 0, lambda: self.local.reserved)
        return connection

    @contextmanager
    def writing(self) -> Iterator[Any]:
        self.local.reserved = next(self.sequence)
        time.sleep(random.uniform(0, 0.03))
        with super().writing() as connection:
            yield connection

    def write(self, work: Callable[[Any], Any]) -> Any:
        with self.writing() as connection:
            return work(connection)


def test_a_store_whose_ids_do_not_follow_commits_breaks_the_contract(tmp_path: Path) -> None:
    """A follower that continues after the highest id misses a later commit with a lower id."""
    opened: list[_SequenceEngine] = []

    def connect() -> Engine:
        engine = _SequenceEngine(tmp_path / "state.db", application_id=int.from_bytes(APPLICATION_ID, "big"), wait=60.0)
        engine.create_tables(SCHEMA)
        opened.append(engine)
        return engine

    with pytest.raises(AssertionError, match="the follower missed"):
        ConcurrencyContract().test_a_follower_misses_no_message(connect)
    for engine in opened:
        engine.close()
