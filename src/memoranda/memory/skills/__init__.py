"""Skills: procedures that an agent saves and follows, in the open Agent Skills format."""
