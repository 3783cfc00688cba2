"""Pages of external memory: facts of the holographic provider, and what providers have yet to receive."""
