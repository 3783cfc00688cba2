"""RetainDB fulfils the contract of vendors, with its server and with its local program."""

from pathlib import Path
from typing import Any

import pytest

from memoranda.external.vendors.retaindb.vendor import RetainDBProvider
from tests.external.vendors.retaindb.conftest import settings_for
from tests.external.vendors.retaindb.double import LocalDouble, ServerDouble
from tests.external.vendors.vendor_contract import VendorContract

# The contract runs every day against Acme and Zep.
pytestmark = pytest.mark.slow


class _RetainDBContract(VendorContract):
    tool_that_searches = ("retaindb_search", {"query": "zebra"})

    def make_provider(self, double: Any, home: Path) -> RetainDBProvider:
        return RetainDBProvider(home, settings_for(double))


class TestServer(_RetainDBContract):
    """The server, which queues what it accepts."""

    @pytest.fixture
    def double(self, server: ServerDouble) -> ServerDouble:
        return server


class TestLocal(_RetainDBContract):
    """The local program."""

    @pytest.fixture
    def double(self, local: LocalDouble) -> LocalDouble:
        return local
