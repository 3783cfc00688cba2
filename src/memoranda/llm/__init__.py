"""Chat models behind one protocol: OpenAI-compatible and Anthropic clients, a demo model, and token estimates."""
