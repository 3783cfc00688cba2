"""RetainDB: memories with types and scopes, and files, in its cloud, on a server of yours, or in its local program."""
