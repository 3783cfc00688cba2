"""A conversation of 200 turns with a script for both sides, told over real HTTP, and killed as often as one likes."""
