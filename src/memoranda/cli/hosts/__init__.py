"""`memoranda install`, `uninstall` and `hook`: Memoranda in the programs that people work in."""
