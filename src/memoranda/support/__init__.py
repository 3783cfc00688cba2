"""Helpers that know nothing of memory: where a home lies, and how a file gets safely onto a disk."""
