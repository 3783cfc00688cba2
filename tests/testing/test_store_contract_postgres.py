"""The PostgreSQL store keeps the whole contract."""

from collections.abc import Iterator

import pytest

from memoranda.memory.record.store import SessionStore, open_store
from memoranda.testing.store_contract import StoreContract
from tests.postgres import Server


class TestNewestServer(StoreContract):
    @pytest.fixture
    def server(self, postgres_server: Server) -> Server:
        return postgres_server

    @pytest.fixture
    def store(self, server: Server) -> Iterator[SessionStore]:
        with server.schema() as url, open_store(url) as opened:
            yield opened

    @pytest.fixture
    def other(self, server: Server) -> Iterator[SessionStore]:
        with server.schema() as url, open_store(url) as opened:
            yield opened


@pytest.mark.slow
class TestOldestServer(TestNewestServer):
    @pytest.fixture
    def server(self, oldest_postgres_server: Server) -> Server:
        return oldest_postgres_server
