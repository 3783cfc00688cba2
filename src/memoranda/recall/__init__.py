"""Finding conversations again: what was typed becomes a query, and what it finds is ranked by conversation."""
