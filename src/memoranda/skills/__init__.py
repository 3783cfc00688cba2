"""Skills: procedures that an agent keeps and follows, in the open Agent Skills format."""
