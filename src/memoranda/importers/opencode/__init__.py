"""OpenCode: sessions and sub-agents, from its database or from the files of older versions."""

from memoranda.importers.opencode.reader import OpenCode

__all__ = ["OpenCode"]
