"""Honcho: a model of the user, built by a server from what was said."""

from memoranda.providers.vendors.honcho.vendor import HonchoProvider

__all__ = ["HonchoProvider"]
