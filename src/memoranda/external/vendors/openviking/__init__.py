"""OpenViking: a context database with a tree of `viking://` files, served by the user's own server."""

from memoranda.external.vendors.openviking.vendor import OpenVikingProvider

__all__ = ["OpenVikingProvider"]
