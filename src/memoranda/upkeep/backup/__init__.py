"""Backups of a home: one file with everything that cannot be rebuilt, consistent while the home is in use."""
