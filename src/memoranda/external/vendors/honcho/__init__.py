"""Honcho: a model of the user, built by a server from what was said."""

from memoranda.external.vendors.honcho.vendor import HonchoProvider

__all__ = ["HonchoProvider"]
