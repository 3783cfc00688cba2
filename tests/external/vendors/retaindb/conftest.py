"""RetainDB's local program and its server, for tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.vendors.retaindb.vendor import RetainDBProvider
from tests.external.vendors.retaindb.double import LocalDouble, ServerDouble
from tests.external.vendors.vendor_contract import SECRET

Start = Callable[..., RetainDBProvider]


@pytest.fixture
def server() -> Iterator[ServerDouble]:
    with ServerDouble.start() as double:
        yield double


@pytest.fixture
def local() -> Iterator[LocalDouble]:
    with LocalDouble.start() as double:
        yield double


@pytest.fixture(params=["server", "local"])
def double(request: pytest.FixtureRequest) -> Any:
    """Each in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a provider that uses a double; all are shut down at the end."""
    started: list[RetainDBProvider] = []

    def start(double: LocalDouble, *, user_id: str = "", **settings: Any) -> RetainDBProvider:
        provider = RetainDBProvider(tmp_path, settings_for(double, **settings))
        provider.initialize("s1", hermes_home=str(tmp_path), user_id=user_id)
        started.append(provider)
        return provider

    yield start
    for provider in started:
        provider.shutdown()


def settings_for(double: LocalDouble, **others: Any) -> dict[str, Any]:
    return {"base_url": double.url, "api_key": SECRET, "timeout": 1} | others
