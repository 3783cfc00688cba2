"""Zep: a graph of facts about each user, with the times at which they were true."""

from memoranda.external.vendors.zep.vendor import ZepProvider

__all__ = ["ZepProvider"]
