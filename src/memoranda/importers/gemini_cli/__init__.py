"""Reads conversations of Gemini CLI."""

from memoranda.importers.gemini_cli.reader import GeminiCli

__all__ = ["GeminiCli"]
