"""The provider for Zep."""

from typing import ClassVar

from memoranda.providers.vendors.vendor import Vendor
from memoranda.providers.vendors.vendor_provider import VendorProvider
from memoranda.providers.vendors.zep.vendor import ZepVendor


class ZepProvider(VendorProvider):
    """Zep as an external memory."""

    vendor_class: ClassVar[type[Vendor]] = ZepVendor
