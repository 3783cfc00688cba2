"""The provider for Hindsight: facts, entities and observations that a server extracts from conversations."""

from memoranda.external.vendors.hindsight.vendor import HindsightProvider

__all__ = ["HindsightProvider"]
