"""Reads conversations of Codex."""

from memoranda.importers.codex.reader import Codex

__all__ = ["Codex"]
