"""The provider for Supermemory: a service that learns memories and a profile of the user from conversations."""

from memoranda.external.vendors.supermemory.vendor import SupermemoryProvider

__all__ = ["SupermemoryProvider"]
