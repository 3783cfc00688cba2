"""Honcho fulfils the contract of all providers and that of all vendors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.external.vendors.honcho.vendor import HonchoProvider
from memoranda.external.vendors.provider import VendorProvider
from tests.external.vendors.honcho.double import KEY, HonchoDouble
from tests.external.vendors.vendor_contract import VendorContract

# The contract runs every day against Acme and Zep.
pytestmark = pytest.mark.slow


class TestHoncho(VendorContract):
    """The contract, against the double."""

    tool_that_searches = ("honcho_search", {"query": "zebra"})

    @pytest.fixture
    def double(self) -> Iterator[HonchoDouble]:
        with HonchoDouble.start() as double:
            yield double

    def make_provider(self, double: HonchoDouble, home: Path) -> VendorProvider:
        return HonchoProvider(home, {"baseUrl": double.url, "api_key": KEY, "timeout": 1})
