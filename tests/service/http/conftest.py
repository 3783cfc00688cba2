"""One service with keys for all tests that do not change what others see: each test uses users of its own."""

import itertools
from collections.abc import Iterator

import httpx
import pytest

from tests.service.http.running_service import RunningService, run_service

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that runs for the whole session; every request needs a key."""
    with run_service(tmp_path_factory.mktemp("service") / "home") as running:
        # The first request opens the stores, which is not the work of the test that happens to be first.
        running.client(running.key("read")).post("/v1/search", json={"query": "nothing"}).raise_for_status()
        yield running


@pytest.fixture
def client(shared_service: RunningService) -> Iterator[httpx.Client]:
    """A client with all scopes, bound to a new user."""
    with shared_service.client(shared_service.key(user=f"user-{next(_numbers)}")) as opened:
        yield opened
