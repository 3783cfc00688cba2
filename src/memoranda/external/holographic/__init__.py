"""Holographic, the bundled provider: facts with entities, trust and age, found by words and by vectors."""

from memoranda.external.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
