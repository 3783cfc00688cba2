"""Bringing along what was said elsewhere: readers of other programs' transcripts, and the one way into the record."""
