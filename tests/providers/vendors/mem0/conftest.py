"""The three deployments of Mem0 for tests: two behind a service on this machine, one with a stand-in of its library."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import memoranda.config.secrets  # noqa: F401  (provides the variables that the library reads)
from memoranda.providers.vendors.mem0 import Mem0Provider
from tests.providers.http_service import Service
from tests.providers.vendors.mem0.mem0_service import Mem0Service, mem0_service, settings_for

_STAND_IN = Path(__file__).with_name("stand_in")
_PACKAGES = ("mem0", "qdrant_client")

Start = Callable[..., Mem0Provider]


@pytest.fixture
def running() -> Iterator[tuple[Mem0Service, Service]]:
    with mem0_service() as running:
        yield running


@pytest.fixture
def state(running: tuple[Mem0Service, Service]) -> Mem0Service:
    return running[0]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The stand-in of Mem0's library, as if it were installed; it is not imported yet by others."""
    monkeypatch.syspath_prepend(str(_STAND_IN))
    monkeypatch.delenv("MEM0_TELEMETRY", raising=False)
    monkeypatch.delenv("MEM0_DIR", raising=False)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in _PACKAGES}
    yield importlib.import_module("mem0")
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        del sys.modules[name]
    sys.modules.update(hidden)


@pytest.fixture
def start(running: tuple[Mem0Service, Service], tmp_path: Path) -> Iterator[Start]:
    """Starts a provider for one of the deployments; all are shut down at the end."""
    started: list[Mem0Provider] = []

    def start(deployment: str, *, session_id: str = "s1", user_id: str = "", **settings: Any) -> Mem0Provider:
        values = {"deployment": "oss"} if deployment == "oss" else settings_for(deployment, running[1])
        provider = Mem0Provider(tmp_path, {**values, **settings})
        provider.initialize(session_id, hermes_home=str(tmp_path), agent_context="primary", user_id=user_id)
        started.append(provider)
        return provider

    yield start
    for provider in started:
        provider.shutdown()
