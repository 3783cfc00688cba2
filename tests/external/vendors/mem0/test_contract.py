"""Mem0 fulfils the contract of vendors, in each of its deployments."""

from pathlib import Path
from typing import Any

import pytest

from memoranda.external.vendors.mem0.vendor import Mem0Provider
from tests.external.vendors.mem0.conftest import settings_for
from tests.external.vendors.mem0.double import PlatformDouble, ServerDouble
from tests.external.vendors.mem0.library_double import LibraryDouble
from tests.external.vendors.vendor_contract import VendorContract

# The contract runs every day against Acme and Zep.
pytestmark = pytest.mark.slow


class _Mem0Contract(VendorContract):
    tool_that_searches = ("mem0_search", {"query": "zebra"})

    def make_provider(self, double: Any, home: Path) -> Mem0Provider:
        return Mem0Provider(home, settings_for(double))


class TestServer(_Mem0Contract):
    """The self-hosted server."""

    @pytest.fixture
    def double(self, server: ServerDouble) -> ServerDouble:
        return server


class TestPlatform(_Mem0Contract):
    """The platform."""

    @pytest.fixture
    def double(self, platform: PlatformDouble) -> PlatformDouble:
        return platform


class TestLibrary(_Mem0Contract):
    """The library in this process."""

    @pytest.fixture
    def double(self, library: LibraryDouble) -> LibraryDouble:
        return library
