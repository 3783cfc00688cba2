"""One service with the compatible API for the whole session; each test has a key of a new user."""

import itertools
from collections.abc import Iterator

import httpx
import pytest

from memoranda.service.mounts import COMPATIBLE
from tests.service.http.running_service import RunningService, run_service

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def compatible(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with the API of mem0; every request needs a key."""
    home = tmp_path_factory.mktemp("compatible") / "home"
    with run_service(home, mounts=tuple(COMPATIBLE.values())) as running:
        # The first request opens the stores, which is not the work of the test that happens to be first.
        body = {"query": "nothing"}
        running.client(running.key("read")).post("/v3/memories/search/", json=body).raise_for_status()
        yield running


@pytest.fixture
def key(compatible: RunningService) -> str:
    """A key with all scopes, bound to a new user."""
    return compatible.key(user=f"user-{next(_numbers)}")


@pytest.fixture
def client(compatible: RunningService, key: str) -> httpx.Client:
    return compatible.client(key)
