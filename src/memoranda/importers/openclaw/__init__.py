"""Coming from OpenClaw (and Clawdbot and Moltbot before it): memories, skills, identity, settings and transcripts."""

from memoranda.importers.openclaw.reader import OpenClaw

__all__ = ["OpenClaw"]
