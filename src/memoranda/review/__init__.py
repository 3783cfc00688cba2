"""Background review: now and then, after an answer, a look back at what the user said that is worth keeping."""
