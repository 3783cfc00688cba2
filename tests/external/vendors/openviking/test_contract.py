"""The contract of all vendors, for OpenViking."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.external.vendors.openviking.vendor import OpenVikingProvider
from tests.external.vendors.openviking.double import VikingDouble
from tests.external.vendors.vendor_contract import SECRET, VendorContract

# The contract runs every day against Acme and Zep.
pytestmark = pytest.mark.slow


class TestOpenViking(VendorContract):
    """Against a double that answers as the real server 0.5.2 was recorded to answer."""

    tool_that_searches = ("viking_search", {"query": "zebra"})

    @pytest.fixture
    def double(self) -> Iterator[VikingDouble]:
        with VikingDouble.start() as double:
            yield double

    def make_provider(self, double: VikingDouble, home: Path) -> OpenVikingProvider:
        return OpenVikingProvider(home, {"endpoint": double.url, "api_key": SECRET, "timeout": 1})
