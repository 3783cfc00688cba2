"""Reads conversations of OpenCode."""

from memoranda.importers.opencode.reader import OpenCode

__all__ = ["OpenCode"]
