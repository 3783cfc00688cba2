"""The client for OpenAI's chat completions API and compatible services."""
