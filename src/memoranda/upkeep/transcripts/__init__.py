"""Conversations as documents that a person reads without Memoranda: Markdown and HTML."""
