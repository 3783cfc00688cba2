"""A conversation of 200 turns with a script for both sides, over real HTTP, and killed as often as wanted."""
