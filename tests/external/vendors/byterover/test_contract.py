"""The contract of all vendors, for ByteRover: a program and files instead of a service."""

from pathlib import Path

import pytest

from memoranda.errors import TemporaryProviderError
from memoranda.external.vendors.byterover.vendor import ByteRoverProvider
from memoranda.external.vendors.provider import VendorProvider
from tests.external.vendors.byterover.double import BrvDouble
from tests.external.vendors.vendor_contract import PERMANENT, TEMPORARY, VendorContract
from tests.external.vendors.vendor_service import Fault, VendorDouble

# The contract runs every day against Acme and Zep.
pytestmark = pytest.mark.slow


class TestByteRover(VendorContract):
    """Against a program that prints what the real `brv` 3.14.0 was recorded to print."""

    tool_that_searches = ("brv_status", {})
    recalls_live = False

    @pytest.fixture
    def double(self, tmp_path: Path) -> BrvDouble:
        return BrvDouble(tmp_path / "program")

    def make_provider(self, double: BrvDouble, home: Path) -> ByteRoverProvider:
        double.home = home
        return ByteRoverProvider(home, {"program": str(double.program), "timeout": 1})

    def refuse_turns(self) -> bool:
        assert isinstance(self._double, BrvDouble)
        self._double.block_tree()
        return True

    def lose_next_answer(self) -> bool:
        return False

    @pytest.mark.parametrize("fault", [*TEMPORARY, *PERMANENT])
    def test_a_turn_waits_while_the_service_fails(
        self, fault: Fault, started: VendorProvider, double: VendorDouble
    ) -> None:
        """A turn is a file: it is stored whatever happens to the program, and waits only if it cannot be written."""
        assert isinstance(double, BrvDouble)
        double.fail(fault)
        double.block_tree()
        with pytest.raises(TemporaryProviderError, match="cannot be written"):
            started.sync_turn("The zebra is called Otto.", "Noted.", session_id="s1", idempotency_key="k1")
        double.block_tree(False)
        for attempt in (2, 3):
            started.sync_turn(
                "The zebra is called Otto.", "Noted.", session_id="s1", idempotency_key="k1", attempt=attempt
            )
        assert "\n".join(double.stored_texts()).count("**User:** The zebra is called Otto.") == 1

    # A turn is a file, which nothing but the disk confirms.
    test_only_the_service_confirms_that_a_turn_is_stored = None  # type: ignore[assignment]

    @pytest.mark.parametrize("fault", ["missing"])
    def test_a_refused_turn_waits_with_advice(
        self, fault: Fault, provider: VendorProvider, double: VendorDouble, tmp_path: Path
    ) -> None:
        """No program can refuse a file; without the program the provider is not available, and says how to get it."""
        double.fail(401)
        assert not provider.is_available()
        missing = provider.vendor_class.missing_dependency({"program": str(tmp_path / "none")})
        assert "npm install -g byterover-cli" in missing
