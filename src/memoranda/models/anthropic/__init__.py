"""The client for Anthropic's messages API."""
