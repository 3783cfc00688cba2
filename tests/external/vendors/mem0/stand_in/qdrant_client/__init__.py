"""Stands in for the package of the same name, so that Mem0 counts as installed."""
