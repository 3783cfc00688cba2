"""The durable queue of what a provider is still to get."""
