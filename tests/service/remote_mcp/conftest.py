"""One service with MCP and OAuth for all tests here: each uses keys and users of its own."""

from collections.abc import Iterator

import pytest

from memoranda.service.remote_mcp import endpoint
from tests.service.http.running_service import RunningService
from tests.service.remote_mcp.remote_service import run_remote_service
from tests.timing import HANG


@pytest.fixture(autouse=True, scope="session")
def _answers_are_no_streams() -> None:
    """Let an answer take as long as a busy machine needs: after five seconds the service would begin a stream."""
    endpoint._SLOW_SECONDS = HANG


@pytest.fixture(scope="session")
def remote_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with run_remote_service(tmp_path_factory.mktemp("remote") / "home") as running:
        yield running
