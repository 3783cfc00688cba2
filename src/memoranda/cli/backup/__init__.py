"""`memoranda backup` and `memoranda restore`."""
