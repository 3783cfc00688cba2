"""`memoranda install` and `uninstall`: connect Memoranda to the programs that people work in."""
