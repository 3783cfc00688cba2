"""One service with MCP and OAuth for all tests here: each uses keys and users of its own."""

from collections.abc import Iterator

import pytest

from tests.service.http.running_service import RunningService
from tests.service.remote_mcp.remote_service import run_remote_service


@pytest.fixture(scope="session")
def remote_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with run_remote_service(tmp_path_factory.mktemp("remote") / "home") as running:
        yield running
