"""A home: its configuration, the stores that it has, and the keys that open it."""
