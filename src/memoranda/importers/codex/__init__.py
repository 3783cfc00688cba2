"""Codex: rollouts of its sessions, forks and sub-agents."""

from memoranda.importers.codex.reader import Codex

__all__ = ["Codex"]
