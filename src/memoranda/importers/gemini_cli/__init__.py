"""Gemini CLI: recordings of its sessions and sub-agents, and saved checkpoints."""

from memoranda.importers.gemini_cli.reader import GeminiCli

__all__ = ["GeminiCli"]
