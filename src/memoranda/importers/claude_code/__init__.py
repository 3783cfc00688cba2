"""Claude Code: transcripts of its sessions and sub-agents."""

from memoranda.importers.claude_code.reader import ClaudeCode

__all__ = ["ClaudeCode"]
