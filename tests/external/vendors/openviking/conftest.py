"""A server for each test, and providers for its users."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.vendors.openviking.vendor import OpenVikingProvider
from tests.external.vendors.openviking.double import VikingDouble

Start = Callable[..., OpenVikingProvider]


@pytest.fixture
def server() -> Iterator[VikingDouble]:
    with VikingDouble.start() as double:
        yield double


@pytest.fixture
def start(server: VikingDouble, tmp_path: Path) -> Iterator[Start]:
    """Start a provider for a user of the home; settings by name."""
    started: list[OpenVikingProvider] = []

    def start_one(user_id: str = "", facts: dict[str, Any] | None = None, **settings: Any) -> OpenVikingProvider:
        provider = OpenVikingProvider(settings={"endpoint": server.url, "timeout": 5, **settings})
        started.append(provider)
        known = {"hermes_home": str(tmp_path), "user_id": user_id, "agent_context": "primary"}
        provider.initialize("s1", **(known | (facts or {})))
        return provider

    yield start_one
    for provider in started:
        provider.shutdown()
