"""Letta: agent files, saved pages of its server, and the conversations and memory that Letta Code keeps in files."""

from memoranda.importers.letta.reader import Letta

__all__ = ["Letta"]
