"""Zep fulfils the contract of all providers and that of all vendors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.zep.vendor import ZepProvider
from tests.external.vendors.vendor_contract import VendorContract
from tests.external.vendors.zep.double import KEY, ZepDouble

pytestmark = pytest.mark.slow


class TestZep(VendorContract):
    """The contract, against the double."""

    tool_that_searches = ("zep_search", {"query": "zebra"})

    @pytest.fixture
    def double(self) -> Iterator[ZepDouble]:
        with ZepDouble.start() as double:
            yield double

    def make_provider(self, double: ZepDouble, home: Path) -> VendorProvider:
        return ZepProvider(home, {"url": f"{double.url}/api/v4", "api_key": KEY, "timeout": 1})
