"""Copies a whole memory between a home's files and a PostgreSQL server."""
