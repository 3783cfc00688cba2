"""Compression of a full context: when it is due, what to keep, and the running summary of the rest."""
