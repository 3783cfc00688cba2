"""Mem0: facts extracted from conversations, at its platform, on its server, or in this process."""

from memoranda.external.vendors.mem0.vendor import Mem0Provider

__all__ = ["Mem0Provider"]
