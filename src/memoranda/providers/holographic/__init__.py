"""Holographic: facts with entities, trust and age, and an algebra of vectors that finds them by what they hold."""

from memoranda.providers.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
