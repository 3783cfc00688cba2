"""Archives that people ask a chat service for: what is in them, and the readers of two services' own."""
