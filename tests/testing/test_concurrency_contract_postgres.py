"""The PostgreSQL store keeps the concurrency contract."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from memoranda.memory.record.record import open_record
from memoranda.memory.record.schema import SCHEMA
from memoranda.storage.engine import Condition, Engine, FeedTable
from memoranda.storage.position import Position
from memoranda.storage.postgres.dialect import PostgresDialect
from memoranda.storage.postgres.engine import PostgresEngine
from tests.contracts.concurrency import ConcurrencyContract
from tests.storage.postgres.servers import Server, newest_binaries, oldest_binaries, run_directory, shared_server


@pytest.mark.slow
@pytest.mark.usefixtures("ordinary_wait")
class TestNewestServer(ConcurrencyContract):
    @pytest.fixture
    def server(self, tmp_path_factory: pytest.TempPathFactory) -> Server:
        return shared_server(newest_binaries(), run_directory(tmp_path_factory), "-overlapping")

    @pytest.fixture
    def connect(self, server: Server) -> Iterator[Callable[[], Engine]]:
        with server.schema() as url:
            opened: list[Engine] = []

            def connect() -> Engine:
                opened.append(open_record(url, wait=60.0))
                return opened[-1]

            yield connect
            for engine in opened:
                engine.close()


@pytest.mark.slow
class TestOldestServer(TestNewestServer):
    @pytest.fixture
    def server(self, tmp_path_factory: pytest.TempPathFactory) -> Server:
        return shared_server(oldest_binaries(), run_directory(tmp_path_factory), "-overlapping")


class _SequenceDialect(PostgresDialect):
    """Takes the numbers of a sequence for the order of commits."""

    def position_columns(self, column: str) -> str:
        return f"0, {column}"

    def after(self, column: str, position: Position) -> Condition:
        return Condition(f"{column} > ?", (position.row,))

    def position_order(self, column: str, direction: str = "") -> str:
        return f"{column} {direction}"


class _SequenceEngine(PostgresEngine):
    dialect = _SequenceDialect()

    def wait_for_feed(self, feeds: Sequence[FeedTable] = (), *, visible: bool = False) -> list[Position]:
        return super().wait_for_feed(feeds) if feeds else []


@pytest.mark.slow
def test_a_follower_of_a_sequence_breaks_the_contract(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ids come from a sequence at the insert, so a follower that continues after the highest id misses messages."""
    opened: list[_SequenceEngine] = []
    server = shared_server(newest_binaries(), run_directory(tmp_path_factory), "-overlapping")

    def connect() -> Engine:
        engine = _SequenceEngine(url, wait=60.0)
        engine.create_tables(SCHEMA)
        opened.append(engine)
        return engine

    with server.schema() as url, pytest.raises(AssertionError, match="the follower missed"):
        ConcurrencyContract().test_a_follower_misses_no_message_that_is_committed_late(connect)
    for engine in opened:
        engine.close()
