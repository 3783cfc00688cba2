"""The provider for Hindsight: facts, entities and observations that a server extracts from conversations."""
