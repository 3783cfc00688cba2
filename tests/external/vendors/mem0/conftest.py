"""The three deployments of Mem0 for tests: two behind doubles of its services, one with a stand-in of its library."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.vendors.mem0.vendor import Mem0Provider
from tests.external.vendors.mem0.double import Mem0Double, PlatformDouble, ServerDouble
from tests.external.vendors.mem0.library_double import LibraryDouble
from tests.external.vendors.vendor_contract import SECRET

Start = Callable[..., Mem0Provider]


@pytest.fixture
def server() -> Iterator[ServerDouble]:
    with ServerDouble.start() as double:
        yield double


@pytest.fixture
def platform() -> Iterator[PlatformDouble]:
    with PlatformDouble.start() as double:
        yield double


@pytest.fixture
def library() -> Iterator[LibraryDouble]:
    with LibraryDouble.start() as double:
        yield double


@pytest.fixture(params=["server", "platform", "library"])
def double(request: pytest.FixtureRequest) -> Any:
    """Each deployment in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a provider that uses a double; all are shut down at the end."""
    started: list[Mem0Provider] = []

    def start(double: Any, *, session_id: str = "s1", user_id: str = "", **settings: Any) -> Mem0Provider:
        provider = Mem0Provider(tmp_path, settings_for(double, **settings))
        provider.initialize(session_id, hermes_home=str(tmp_path), user_id=user_id)
        started.append(provider)
        return provider

    yield start
    for provider in started:
        provider.shutdown()


def settings_for(double: Mem0Double | LibraryDouble, **others: Any) -> dict[str, Any]:
    """The settings of a provider that uses a double."""
    if isinstance(double, ServerDouble):
        return {
            "deployment": "server",
            "host": double.url,
            "server_key": SECRET,
            "timeout": 1,
            "add_seconds": 1,
        } | others
    if isinstance(double, PlatformDouble):
        return {"deployment": "platform", "platform_url": double.url, "api_key": SECRET, "timeout": 1} | others
    return {"deployment": "oss", "oss_llm_key": SECRET} | others
