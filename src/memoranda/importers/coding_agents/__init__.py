"""One module per program with which people write code."""
