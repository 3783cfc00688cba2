"""Mem0 fulfils the contract of every provider, in each of its deployments."""

from pathlib import Path
from types import ModuleType

import pytest

from memoranda.providers.vendors.mem0 import Mem0Provider
from memoranda.testing.provider_contract import ProviderContract
from tests.providers.http_service import Service
from tests.providers.vendors.mem0.mem0_service import Mem0Service, settings_for


class TestServer(ProviderContract):
    """The self-hosted server."""

    @pytest.fixture
    def provider(self, running: tuple[Mem0Service, Service], tmp_path: Path) -> Mem0Provider:
        return Mem0Provider(tmp_path, settings_for("server", running[1]))


class TestPlatform(ProviderContract):
    """The platform."""

    @pytest.fixture
    def provider(self, running: tuple[Mem0Service, Service], tmp_path: Path) -> Mem0Provider:
        running[0].polls_until_done = 0
        return Mem0Provider(tmp_path, settings_for("platform", running[1], infer=False))


class TestLibrary(ProviderContract):
    """The library in this process."""

    @pytest.fixture
    def provider(self, library: ModuleType, tmp_path: Path) -> Mem0Provider:
        return Mem0Provider(tmp_path, {"deployment": "oss"})
