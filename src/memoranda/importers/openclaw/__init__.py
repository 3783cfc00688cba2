"""Imports from OpenClaw (formerly Clawdbot and Moltbot): memories, skills, identity, settings and transcripts."""

from memoranda.importers.openclaw.reader import OpenClaw

__all__ = ["OpenClaw"]
