"""The provider for Honcho."""

from collections.abc import Mapping
from typing import Any, ClassVar

from memoranda.providers.vendors.honcho.vendor import HonchoVendor
from memoranda.providers.vendors.vendor import Vendor
from memoranda.providers.vendors.vendor_provider import VendorProvider

_CHARS_PER_TOKEN = 4


class HonchoProvider(VendorProvider):
    """Honcho as an external memory; the setting contextTokens narrows the common limit of recalled text."""

    vendor_class: ClassVar[type[Vendor]] = HonchoVendor

    def limits(self) -> Mapping[str, Any]:
        tokens = self._open_vendor().settings["contextTokens"]
        return {**super().limits()} | ({"recall_chars": tokens * _CHARS_PER_TOKEN} if tokens else {})
