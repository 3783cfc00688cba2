"""The contract of vendors holds for a small vendor, and notices vendors that break it."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, ProviderError
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import Turn
from tests.external.vendors.acme import AcmeDouble, AcmeProvider, AcmeVendor
from tests.external.vendors.vendor_contract import SECRET, VendorContract

pytestmark = pytest.mark.slow


def make(kind: type[AcmeVendor], double: AcmeDouble, home: Path) -> VendorProvider:
    class Provider(AcmeProvider):
        vendor_class = kind

    return Provider(home, {"url": double.url, "api_key": SECRET, "timeout": 1})


@pytest.fixture
def double() -> Iterator[AcmeDouble]:
    with AcmeDouble.start() as double:
        yield double


class TestAcme(VendorContract):
    """A vendor of the size of the example."""

    tool_that_searches = ("acme_search", {"query": "zebra"})

    def make_provider(self, double: AcmeDouble, home: Path) -> VendorProvider:
        return make(AcmeVendor, double, home)


class _Careless(AcmeVendor):
    """Takes a turn whatever happens."""

    def store_turn(self, turn: Turn) -> str:
        try:
            return super().store_turn(turn)
        except ProviderError:
            return ""


class _Repeating(AcmeVendor):
    """Does not look before it repeats."""

    def store_turn(self, turn: Turn) -> str:
        return super().store_turn(Turn(turn.key, 1, turn.time, turn.session_id, turn.user, turn.assistant))


class _Shared(AcmeVendor):
    """Knows one user."""

    def open(self) -> None:
        super().open()
        object.__setattr__(self.scope, "user_id", "")


class _Leaking(AcmeVendor):
    """Puts the key into an error."""

    def test_connection(self) -> str:
        """Not a test: the method of a vendor."""
        try:
            return super().test_connection()
        except PermanentProviderError as error:
            raise PermanentProviderError(f"{error} {self.settings['api_key']}") from error


class _Slow(AcmeVendor):
    """Searches as long as it likes."""

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        try:
            return super().search(query, limit, timeout)
        except ProviderError as error:
            raise TimeoutError from error


class _Keeping(AcmeVendor):
    """Says that it has deleted what it keeps."""

    def delete_sent(self, session_ids: Any) -> tuple[list[SentItem], list[str]]:
        return self.sent.items(), []


@pytest.mark.parametrize(
    ("kind", "test", "arguments"),
    [
        (_Careless, "test_a_turn_waits_while_the_service_fails", {"fault": 500}),
        (_Careless, "test_a_refused_turn_waits_with_advice", {"fault": 401}),
        (_Careless, "test_a_refused_turn_raises", {}),
        (_Careless, "test_an_outage_loses_no_turn_and_repeats_none", {}),
        (_Repeating, "test_the_same_key_is_stored_once", {}),
        (_Shared, "test_recall_finds_a_turn_for_its_user_only", {}),
        (_Shared, "test_one_user_never_sees_data_of_another", {}),
        (_Leaking, "test_the_connection_is_tested", {}),
        (_Slow, "test_recall_is_in_time_whatever_the_service_does", {"fault": 500}),
        (_Keeping, "test_forget_deletes_or_lists_everything", {}),
    ],
)
def test_the_contract_notices(
    kind: type[AcmeVendor], test: str, arguments: dict[str, Any], double: AcmeDouble, tmp_path: Path
) -> None:
    """A vendor that breaks it fails the test that is about it."""
    contract = VendorContract()
    contract._double = double
    provider = make(kind, double, tmp_path)
    run = getattr(contract, test)
    names = run.__code__.co_varnames[: run.__code__.co_argcount]
    if "started" in names:
        provider.initialize("s1", hermes_home=str(tmp_path))
    fixtures = {"provider": provider, "started": provider, "double": double, "tmp_path": tmp_path} | arguments
    with pytest.raises((AssertionError, TimeoutError, pytest.fail.Exception)):
        run(**{name: fixtures[name] for name in names if name != "self"})
    provider.shutdown()
    assert not any("delivery" in thread.name for thread in threading.enumerate())
