"""Background review: after some turns, a model looks for what the user said that is worth saving."""
