"""The provider for Supermemory: a service that learns memories and a profile of the user from conversations."""
