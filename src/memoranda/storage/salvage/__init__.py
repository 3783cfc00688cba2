"""Saves the rows of a damaged SQLite file that SQLite itself cannot reach."""
