"""The PostgreSQL store keeps the whole contract."""

from collections.abc import Iterator

import pytest

from memoranda.memory.record.store import SessionStore, open_store
from tests.contracts.store import StoreContract
from tests.storage.postgres.servers import Server


class TestNewestServer(StoreContract):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, postgres_server: Server) -> Server:
        return postgres_server

    @pytest.fixture(scope="class")
    @classmethod
    def used_url(cls, server: Server) -> Iterator[str]:
        with server.schema() as url:
            yield url

    @pytest.fixture
    def store(self, server: Server, used_url: str) -> Iterator[SessionStore]:
        """A store whose tables have been emptied, which takes a seventh of the time that creating them does."""
        with open_store(used_url) as opened:
            yield opened
        server.empty_tables(used_url)

    @pytest.fixture
    def other(self, server: Server) -> Iterator[SessionStore]:
        with server.schema() as url, open_store(url) as opened:
            yield opened


@pytest.mark.slow
class TestOldestServer(TestNewestServer):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, oldest_postgres_server: Server) -> Server:
        return oldest_postgres_server
