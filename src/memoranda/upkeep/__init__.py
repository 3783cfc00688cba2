"""Care of a home: check and repair it, forget, back up, sync, move to a server, and export conversations."""
