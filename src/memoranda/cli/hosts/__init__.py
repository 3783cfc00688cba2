"""`memoranda install`, `uninstall` and `hook`: connect Memoranda to the programs that people work in."""
