"""ByteRover: a tree of knowledge in files on this machine, which the program `brv` searches and extends."""
