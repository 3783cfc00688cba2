"""Imports conversations of other programs: a reader per program, and one importer that writes to the record."""
