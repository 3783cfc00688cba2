"""One service for all tests of the client: each test uses a user of its own."""

import itertools
from collections.abc import Iterator

import pytest

import memoranda
from memoranda.api.client.memory import RemoteMemory
from tests.service.http.running_service import RunningService, run_service

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with run_service(tmp_path_factory.mktemp("client") / "home") as running:
        running.key("admin")
        yield running


@pytest.fixture
def user() -> str:
    return f"person-{next(_numbers)}"


@pytest.fixture
def remote(service: RunningService, user: str) -> Iterator[RemoteMemory]:
    """The client with all scopes, bound to a new user."""
    with memoranda.connect(service.url, service.key(user=user)) as connected:
        yield connected
