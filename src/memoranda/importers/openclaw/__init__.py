"""Imports from OpenClaw (formerly Clawdbot and Moltbot): memories, skills, identity, settings and transcripts."""
