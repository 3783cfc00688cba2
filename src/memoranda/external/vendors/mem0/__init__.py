"""Mem0: facts extracted from conversations, at its platform, on its server, or in this process."""
