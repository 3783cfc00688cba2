"""Chat models behind one protocol: OpenAI-compatible and Anthropic clients, and token estimates."""
